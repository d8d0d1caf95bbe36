"""Who is told what becomes of runs: signed webhooks against a real receiver, and mail by a command."""

import base64
import hashlib
import hmac
import json
import os
import re
import signal
import threading
import time
import unittest
from email import message_from_bytes, policy
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from harness import Deployment, free_port, main, wait_until

SECRET = base64.b64encode(b"the first secret of this test").decode()
OTHER_SECRET = base64.b64encode(b"the second secret of this one").decode()
HIDDEN_PATH = "/hook-3f9c1d"  # as with many services, who knows it may post


def expected_signature(secret, headers, body):
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    return "v1," + base64.b64encode(hmac.new(base64.b64decode(secret), signed, hashlib.sha256).digest()).decode()


class Receiver:
    """Keeps what is posted to each path; `answers[path]` says how to answer, a status or a function each."""

    def __init__(self, port=0):
        receiver = self
        self.got = []
        self.answers = {}
        self.released = threading.Event()
        self.lock = threading.Lock()

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                with receiver.lock:
                    receiver.got.append((self.path, self.headers, body))
                    planned = receiver.answers.get(self.path) or [200]
                    answer = planned.pop(0) if len(planned) > 1 else planned[0]
                status = answer() if callable(answer) else answer
                self.send_response(status)
                if status == 302:
                    self.send_header("Location", "/elsewhere")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.server.daemon_threads = True
        self.server.block_on_close = False
        self.port = self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,))
        self.thread.start()

    def hang(self):
        self.released.wait(60)
        return 200

    def close(self):
        self.released.set()
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()

    def posts(self, path=HIDDEN_PATH):
        with self.lock:
            return [(headers, body) for to, headers, body in self.got if to == path]

    def wait_for(self, count, path=HIDDEN_PATH):
        wait_until(lambda: len(self.posts(path)) >= count, what=f"{count} posts to {path}")
        return self.posts(path)


class Case(unittest.TestCase):
    def setUp(self):
        self.d = Deployment()
        self.addCleanup(self.d.close)
        self.base = (self.d.config / "tpd.yaml").read_text()

    def receiver(self, port=0):
        receiver = Receiver(port)
        self.addCleanup(receiver.close)
        return receiver

    def secret(self, name, secret=SECRET):
        path = self.d.root / f"{name}.secret"
        path.touch(mode=0o600)
        path.write_text(f"whsec_{secret}\n")
        return path

    def configure(self, **ports_and_paths):
        """Webhooks by name, (port, path) or (port, path, on)."""
        lines = ["notify:", "  webhooks:"]
        for name, (port, path, *on) in ports_and_paths.items():
            lines.append(f"    - {{name: {name}, url: 'http://127.0.0.1:{port}{path}', secret_file: {self.secret(name)}, "
                         f"on: [{', '.join(on)}]}}")
        (self.d.config / "tpd.yaml").write_text(self.base + "\n".join(lines) + "\n")

    def project(self, *notices):
        (self.d.work / "tp.yaml").write_text("notify:\n" + "".join(
            f"  - {{to: {to}, on: [{', '.join(on)}]}}\n" for to, on in notices))

    def status(self):
        return {row["name"]: row for row in self.d.json("admin", "receivers")["receivers"]}

    def verified(self, posts, secret=SECRET):
        for headers, body in posts:
            self.assertEqual(headers["webhook-signature"], expected_signature(secret, headers, body))
            self.assertLess(abs(time.time() - int(headers["webhook-timestamp"])), 60)
        return [json.loads(body) for _, body in posts]


class Webhooks(Case):
    def test_a_run_is_told_as_its_owner_asked(self):
        receiver = self.receiver()
        self.configure(chat=(receiver.port, HIDDEN_PATH), ops=(receiver.port, "/ops", "stopped"))
        self.project(("chat", ["failed", "succeeded"]))
        self.d.start()
        good = self.d.submit("true")
        self.assertEqual(self.d.wait(good), 0)
        bad = self.d.submit("sh", "-c", "exit 3", flags=("--env", "PASSWORD=in-the-environment"))
        self.assertEqual(self.d.wait(bad), 1)
        stopped = self.d.submit("sleep", "600")
        self.d.tp("stop", stopped)
        self.d.wait(stopped)

        told = self.verified(receiver.wait_for(2))
        self.assertEqual([(m["type"], m["data"]["run"]) for m in told], [("run.succeeded", good), ("run.failed", bad)])
        data = told[1]["data"]
        shown = self.d.show(bad)
        self.assertEqual(set(data), {"schema_version", "deployment", "run", "name", "owner", "project", "step",
                                     "old_state", "new_state", "reason", "retry_count"})
        self.assertEqual((data["owner"], data["project"], data["step"], data["new_state"], data["retry_count"]),
                         (shown["owner"], "default", "main", "FAILED", 0))
        self.assertEqual(data["reason"], shown["reason"])
        self.assertRegex(told[1]["timestamp"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")
        self.assertNotIn(b"in-the-environment", b"".join(body for _, _, body in receiver.got))
        self.assertEqual([m["data"]["run"] for m in self.verified(receiver.wait_for(1, "/ops"))], [stopped])
        self.assertEqual(len({headers["webhook-id"] for _, headers, _ in receiver.got}), 3)
        wait_until(lambda: self.status()["chat"]["delivered"] == 2, what="what was delivered to be counted")
        self.assertEqual(shown["notify"], [{"to": "chat", "on": ["FAILED", "SUCCEEDED"]}])

    def test_a_retry_is_told_again_and_in_order(self):
        receiver = self.receiver()
        receiver.answers[HIDDEN_PATH] = [500, 302, 200]
        self.configure(chat=(receiver.port, HIDDEN_PATH))
        self.project(("chat", ["failed", "paused", "succeeded"]))
        self.d.start()
        flag = self.d.root / "good"
        run = self.d.submit("sh", "-c", f"test -e {flag}")
        self.assertEqual(self.d.wait(run), 1)
        flag.touch()
        self.d.tp("retry", run)
        self.assertEqual(self.d.wait(run), 0)
        posts = receiver.wait_for(4)
        told = self.verified(posts)
        self.assertEqual([m["data"]["new_state"] for m in told], ["FAILED"] * 3 + ["SUCCEEDED"])
        self.assertEqual([m["data"]["retry_count"] for m in told], [0, 0, 0, 1])
        ids = [headers["webhook-id"] for headers, _ in posts]
        self.assertEqual((len(set(ids[:3])), len(set(ids))), (1, 2))
        self.assertEqual(receiver.posts("/elsewhere"), [])

    def test_what_nobody_could_send_is_refused(self):
        self.configure(chat=(9, HIDDEN_PATH))
        self.d.start()
        for to, words in (("chta", b"did you mean chat?"), ("bob@example.org", b"notify.mail in tpd.yaml")):
            self.project((to, ["failed"]))
            refused = self.d.submit("true", check=False)
            self.assertEqual(refused.returncode, 2, refused.stderr)
            self.assertIn(words, refused.stderr)
        self.project(("'http://169.254.169.254/'", ["failed"]))
        self.assertEqual(self.d.submit("true", check=False).returncode, 2)
        self.assertEqual(self.d.json("ls")["runs"], [])

    def test_a_secret_is_exchanged_by_a_reload_and_nothing_secret_is_logged(self):
        receiver = self.receiver()
        receiver.answers[HIDDEN_PATH] = [200, 410]
        self.configure(chat=(receiver.port, HIDDEN_PATH))
        self.project(("chat", ["succeeded"]))
        self.d.start()
        self.d.wait(self.d.submit("true"))
        self.verified(receiver.wait_for(1))
        (self.d.root / "chat.secret").chmod(0o644)
        refused = self.d.tp("admin", "reload", check=False)
        self.assertEqual(refused.returncode, 9)
        self.assertIn(b"chmod 600", refused.stderr)
        (self.d.root / "chat.secret").chmod(0o600)
        self.secret("chat", OTHER_SECRET)
        self.d.tp("admin", "reload")
        self.d.wait(self.d.submit("true"))
        self.verified(receiver.wait_for(2)[1:], OTHER_SECRET)
        wait_until(lambda: self.status()["chat"]["given_up"] == 1, what="410 to be given up")
        self.assertEqual(self.status()["chat"]["last_error"], "it answers 410")
        log = (self.d.root / "tpd.log").read_text()
        self.assertIn("is given up after 1 tries: it answers 410", log)
        for secret in (SECRET, OTHER_SECRET, HIDDEN_PATH, "the first secret"):
            self.assertNotIn(secret, log)
        self.assertNotIn(HIDDEN_PATH.encode(), self.d.tp("admin", "receivers").stdout + refused.stderr)


class Failures(Case):
    def test_a_receiver_that_is_down_is_told_once_it_is_up(self):
        port = free_port()
        self.configure(chat=(port, HIDDEN_PATH))
        self.project(("chat", ["succeeded"]))
        self.d.start()
        run = self.d.submit("true")
        self.d.wait(run)
        wait_until(lambda: self.status()["chat"]["last_failed_at"], what="a try that failed")
        self.assertEqual(self.status()["chat"]["waiting"], 1)
        receiver = self.receiver(port)
        [told] = self.verified(receiver.wait_for(1))
        self.assertEqual(told["data"]["run"], run)

    def test_one_that_hangs_delays_no_other_and_no_job(self):
        receiver = self.receiver()
        receiver.answers["/slow"] = [receiver.hang]
        self.configure(slow=(receiver.port, "/slow"), chat=(receiver.port, HIDDEN_PATH))
        self.project(("slow", ["succeeded"]), ("chat", ["succeeded"]))
        self.d.start()
        runs = [self.d.submit("true") for _ in range(3)]
        for run in runs:
            self.assertEqual(self.d.wait(run), 0)
        receiver.wait_for(1, "/slow")
        told = self.verified(receiver.wait_for(3))
        self.assertEqual(sorted(m["data"]["run"] for m in told), sorted(runs))
        begin = time.monotonic()
        self.d.kill(signal.SIGTERM)
        self.assertLess(time.monotonic() - begin, 8, "a try under way is broken off")

    def test_killed_between_the_post_and_its_memory_it_posts_the_same_again(self):
        receiver = self.receiver()

        def die():
            os.kill(self.d.process.pid, signal.SIGKILL)
            self.d.process.wait()
            return 200

        receiver.answers[HIDDEN_PATH] = [die, 200]
        self.configure(chat=(receiver.port, HIDDEN_PATH))
        self.project(("chat", ["succeeded"]))
        self.d.start()
        go = self.d.root / "go"
        second = self.d.submit("sh", "-c", f"until [ -e {go} ]; do sleep 0.05; done")
        wait_until(lambda: self.d.step(second)["state"] == "RUNNING", what="RUNNING")
        first = self.d.submit("true")
        receiver.wait_for(1)
        wait_until(lambda: self.d.process.poll() is not None, what="tpd to die")
        go.touch()  # it ends while nobody looks
        self.d.start()
        self.assertEqual(self.d.wait(second), 0)
        posts = receiver.wait_for(3)
        told = self.verified(posts)
        self.assertEqual([m["data"]["run"] for m in told], [first, first, second])
        ids = [headers["webhook-id"] for headers, _ in posts]
        self.assertEqual(ids[0], ids[1])
        self.assertEqual(posts[0][1], posts[1][1])
        self.assertNotEqual(ids[1], ids[2])


class Mail(Case):
    def hook(self, script):
        hook = self.d.root / "hook"
        hook.write_text(f"#!/bin/sh\n{script}\n")
        hook.chmod(0o755)
        (self.d.config / "tpd.yaml").write_text(
            self.base + f"notify:\n  mail: {{command: [{hook}, '-t', '; touch {self.d.root}/oops']}}\n")

    def mails(self, count):
        box = self.d.root / "box"
        wait_until(lambda: len(list(box.glob("*.mail"))) >= count, what=f"{count} mails")
        return [message_from_bytes(path.read_bytes(), policy=policy.default) for path in sorted(box.glob("*.mail"))]

    def test_a_command_gets_the_whole_mail_and_no_shell(self):
        box = self.d.root / "box"
        box.mkdir()
        self.hook(f'cat > {box}/$$.new && printf "%s\\n" "$#" "$@" > {box}/args && env > {box}/env && '
                  f"mv {box}/$$.new {box}/$$.mail")
        self.project(("team@example.org", ["failed"]), ("boss@example.org", ["failed"]))
        self.d.start(SECRET_OF_TPD="x")
        run = self.d.submit("sh", "-c", "exit 3")
        self.d.wait(run)
        mails = self.mails(2)
        self.assertEqual({mail["To"] for mail in mails}, {"team@example.org", "boss@example.org"})
        self.assertEqual(len({mail["Message-ID"] for mail in mails}), 1)
        for mail in mails:
            self.assertTrue(mail["Subject"].endswith(f"{run} FAILED"), mail["Subject"])
            self.assertIn(self.d.show(run)["reason"], mail.get_content())
        self.assertEqual((box / "args").read_text().splitlines(), ["2", "-t", f"; touch {self.d.root}/oops"])
        self.assertFalse((self.d.root / "oops").exists())
        self.assertNotIn("SECRET_OF_TPD", (box / "env").read_text())

    def test_a_command_that_fails_is_run_again_and_what_looks_like_an_option_refused(self):
        box = self.d.root / "box"
        box.mkdir()
        self.hook(f"cat > {box}/new; test -e {box}/once || {{ touch {box}/once; exit 75; }}; mv {box}/new {box}/1.mail")
        self.d.start()
        self.project(("'-oQ/tmp@example.org'", ["succeeded"]))
        self.assertEqual(self.d.submit("true", check=False).returncode, 2)
        self.project(("team@example.org", ["succeeded"]))
        run = self.d.submit("true")
        self.d.wait(run)
        [mail] = self.mails(1)
        self.assertTrue(re.search(rf"{run} SUCCEEDED$", mail["Subject"]))
        wait_until(lambda: self.status()["mail"]["delivered"] == 1, what="what was delivered to be counted")
        self.assertEqual(self.status()["mail"]["last_error"], "the command exited 75")

    def test_a_command_that_hangs_keeps_nobody_waiting(self):
        self.hook(f"echo $$ > {self.d.root}/pid; exec sleep 600")
        self.project(("team@example.org", ["succeeded"]))
        self.d.start()
        self.assertEqual(self.d.wait(self.d.submit("true")), 0)
        pid = int(wait_until(lambda: (self.d.root / "pid").exists() and (self.d.root / "pid").read_text(), what="the command"))
        begin = time.monotonic()
        self.d.kill(signal.SIGTERM)
        self.assertLess(time.monotonic() - begin, 8)
        wait_until(lambda: not os.path.exists(f"/proc/{pid}"), 10, "the command to be gone")


if __name__ == "__main__":
    main()

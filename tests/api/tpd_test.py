"""tpd as a program: what it leaves on disk, how it starts, reloads and ends."""

import json
import os
import shutil
import signal
import stat
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

BIN = Path(os.environ["TP_BIN_DIR"])
TIMEOUT_S = 60

REGISTRY = """\
series:
  cpu:
    gpus_per_node: 0
    nodes:
      - {name: local-1, address: 127.0.0.1}
profiles:
  cpu:
    series: cpu
    default_shape: 1
"""


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


class Tpd(unittest.TestCase):
    def setUp(self):
        self.root = Path(tempfile.mkdtemp(prefix="tp-tpd-"))
        self.addCleanup(shutil.rmtree, self.root, ignore_errors=True)
        self.data = self.root / "data"
        self.config = self.root / "config"
        self.config.mkdir()
        (self.config / "tpd.yaml").write_text("server:\n  listen: 127.0.0.1:0\n")
        (self.config / "registry.yaml").write_text(REGISTRY)
        self.log = self.root / "tpd.log"

    def environment(self, **extra):
        return {k: v for k, v in os.environ.items() if not k.startswith("TP_")} | extra

    def run_tpd(self, *arguments, binary="tpd", **environment):
        return subprocess.run([BIN / binary, *arguments], env=self.environment(**environment), text=True,
                              capture_output=True, timeout=TIMEOUT_S)

    def serve(self, *arguments):
        with open(self.log, "ab") as log:
            process = subprocess.Popen([BIN / "tpd", "serve", "--data", self.data, "--config", self.config, *arguments],
                                       env=self.environment(), stdout=log, stderr=log, start_new_session=True)
        self.addCleanup(self.end, process)
        self.wait_for(lambda: (self.data / "client.json").exists() or process.poll() is not None)
        self.assertIsNone(process.poll(), self.log.read_text())
        return process

    def end(self, process, how=signal.SIGTERM):
        if process.poll() is None:
            process.send_signal(how)
        return process.wait(timeout=TIMEOUT_S)

    def wait_for(self, condition):
        deadline = time.monotonic() + TIMEOUT_S
        while not condition():
            self.assertLess(time.monotonic(), deadline, self.log.read_text())
            time.sleep(0.02)

    def wait_for_log(self, text):
        self.wait_for(lambda: text in self.log.read_text())

    def test_files_are_private(self):
        self.serve()
        self.assertEqual(mode_of(self.data), 0o700)
        for name in ("token", "client.json", "page.key"):
            self.assertEqual(mode_of(self.data / name), 0o600, name)
        client = json.loads((self.data / "client.json").read_text())
        self.assertEqual(client["token_file"], str(self.data / "token"))
        self.assertRegex(client["address"], r"^127\.0\.0\.1:[1-9][0-9]*$")

    def test_the_token_outlives_restarts_and_is_in_no_log_or_database(self):
        self.end(self.serve())
        token = (self.data / "token").read_text().strip()
        self.end(self.serve("--log-level", "trace"))
        self.assertEqual((self.data / "token").read_text().strip(), token)
        secret = token.rpartition("_")[2].encode()
        self.assertEqual(len(secret), 64)
        for path in [self.log, *self.data.glob("tpd.db*")]:
            self.assertNotIn(secret, path.read_bytes(), path)

    def test_a_clean_end(self):
        process = self.serve()
        self.assertEqual(self.end(process), 0)
        self.assertFalse((self.data / "client.json").exists())
        fsck = self.run_tpd("fsck", "--data", self.data)
        self.assertEqual(fsck.returncode, 0, fsck.stderr)

    def test_a_token_file_open_to_others_is_refused(self):
        self.end(self.serve())
        (self.data / "token").chmod(0o644)
        result = self.run_tpd("serve", "--data", self.data, "--config", self.config)
        self.assertEqual(result.returncode, 1)
        self.assertIn("chmod 600", result.stderr)

    def test_a_second_tpd_is_refused(self):
        process = self.serve()
        second = self.run_tpd("serve", "--data", self.data, "--config", self.config)
        self.assertEqual(second.returncode, 1)
        self.assertIn(str(process.pid), second.stderr)
        self.assertTrue((self.data / "client.json").exists())

    def test_a_port_in_use_is_refused(self):
        self.serve()
        address = json.loads((self.data / "client.json").read_text())["address"]
        (self.config / "tpd.yaml").write_text(f"server:\n  listen: {address}\n")
        second = self.run_tpd("serve", "--data", self.root / "other", "--config", self.config)
        self.assertEqual(second.returncode, 1)
        self.assertIn(address, second.stderr)
        self.assertFalse((self.root / "other" / "client.json").exists())

    def test_reload_takes_a_good_registry_and_refuses_a_bad_one(self):
        process = self.serve()
        (self.config / "registry.yaml").write_text(REGISTRY.replace("gpus_per_node", "gpus_pre_node"))
        process.send_signal(signal.SIGHUP)
        self.wait_for_log("the configuration stays as it was")
        self.assertIn("registry.yaml:3", self.log.read_text())
        (self.config / "registry.yaml").write_text(REGISTRY.replace("local-1", "local-9"))
        process.send_signal(signal.SIGHUP)
        self.wait_for_log("configuration read again")
        self.assertEqual(self.end(process), 0)

    def test_a_bad_configuration_names_file_and_line(self):
        (self.config / "registry.yaml").write_text("series: [\n")
        result = self.run_tpd("serve", "--data", self.data, "--config", self.config)
        self.assertEqual(result.returncode, 2)
        self.assertIn("registry.yaml:", result.stderr)

    def test_json_log_lines_are_json(self):
        self.end(self.serve("--log-format", "json"))
        lines = self.log.read_text().splitlines()
        self.assertGreaterEqual(len(lines), 2)
        for line in lines:
            self.assertEqual(list(json.loads(line)), ["time", "level", "message"])

    def tp(self, *arguments):
        result = self.run_tpd(*arguments, binary="tp", TP_DATA_DIR=str(self.data), TP_CONFIG=str(self.root / "none"))
        self.assertEqual(result.returncode, 0, result.stderr + self.log.read_text())
        return result.stdout.strip()

    def submit(self):
        work = self.root / "work"
        work.mkdir()
        return self.tp("submit", "--dir", work, "--", "true")

    def test_quota_holds_a_job_and_says_so(self):
        self.serve()
        user = self.tp("whoami", "-o", "name")
        self.tp("admin", "quota", "set", user, "--jobs", "0")
        run = self.submit()
        self.assertIn("QUOTA_JOBS", self.tp("why", run))
        self.assertIn("position    1 of 1", self.tp("why", run))
        self.assertEqual(self.tp("queue", "-o", "name"), run)
        self.assertIn("jobs 0/0", self.tp("status"))
        self.tp("admin", "quota", "unset", user)
        self.tp("wait", run)
        self.assertEqual(self.tp("queue", "-o", "name"), "")

    def test_a_closed_window_holds_a_job_until_it_is_held_open(self):
        day = (time.gmtime().tm_wday + 3) % 7
        name = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")[day]
        window = f"    windows:\n      - {{open: {{{name}: ['10:00-11:00']}}}}\nprofiles:"
        (self.config / "registry.yaml").write_text(REGISTRY.replace("profiles:", window))
        self.serve()
        run = self.submit()
        self.assertIn("WINDOW", self.tp("why", run))
        self.assertRegex(self.tp("windows"), r"^cpu  closed, opens .* UTC \(")
        self.tp("admin", "window", "hold-open", "cpu", "--for", "2h")
        self.tp("wait", run)
        self.assertRegex(self.tp("windows"), r"^cpu  held open, closes ")
        self.tp("admin", "window", "hold-open", "cpu", "--end")
        self.assertRegex(self.tp("windows"), r"^cpu  closed")

    def test_arguments(self):
        self.assertRegex(self.run_tpd("version").stdout, r"^tpd \d+\.\d+\.\d+\n$")
        self.assertEqual(self.run_tpd().returncode, 2)
        self.assertEqual(self.run_tpd("serve", "--log-level", "loud").returncode, 2)
        self.assertEqual(self.run_tpd("serve", "--log-format", "xml").returncode, 2)
        self.assertEqual(self.run_tpd("fsck", "--data", self.root / "nothing").returncode, 1)

    def test_crash_points_are_not_in_the_shipped_tpd(self):
        points = self.run_tpd("fault-points", binary="tpd-faults").stdout.split()
        self.assertGreater(len(points), 60)
        self.assertEqual(len(points), len(set(points)))
        shipped = (BIN / "tpd").read_bytes()
        for word in ("TP_CRASH_AT", "TP_COLLECT_AFTER_MS", *points):
            self.assertNotIn(word.encode(), shipped)
        self.assertEqual(self.run_tpd("fault-points").returncode, 2)

    def test_a_crash_order_that_means_nothing_is_refused(self):
        for order in ("now", "before-commit", "before-commit:0", "before-lunch:1"):
            bad = self.run_tpd("serve", "--data", self.data, binary="tpd-faults", TP_CRASH_AT=order)
            self.assertEqual(bad.returncode, 2, bad.stderr)
            self.assertIn("TP_CRASH_AT", bad.stderr)


if __name__ == "__main__":
    program = unittest.main(exit=False, verbosity=2)
    print(f"SCENARIOS api {program.result.testsRun - len(program.result.skipped)}", flush=True)
    raise SystemExit(not program.result.wasSuccessful())

"""Jobs as containers of a real engine through tpd and tp: its death, its cards, what others hold of them."""

import json
import os
import shutil
import subprocess
import time
import unittest
from datetime import datetime, timezone
from itertools import accumulate
from pathlib import Path
from random import Random

from harness import Deployment, main, wait_until

ROOT = Path(__file__).resolve().parent.parent.parent
ENGINES = ROOT / "tests" / "engines"
CHARLM = ROOT / "examples" / "charlm"

REGISTRY = """\
series:
  box:
    gpus_per_node: 4
    virtual_cards: true
    executor: gpu/box
    nodes:
      - {name: box-1, address: rank0}
      - {name: box-2, address: rank1}
profiles:
  box: {series: box, default_shape: 4}
"""


class EngineTest(unittest.TestCase):
    """An engine and a tpd over it, for all tests of the class."""

    engine_id = 33
    script = "docker-engine"
    live = "0"
    tls = "0"
    address = None  # its socket
    image = "tp-busybox:1"

    @classmethod
    def engine(cls, *words):
        return subprocess.run([ENGINES / cls.script, *words], check=True, capture_output=True, text=True, timeout=120,
                              env=os.environ | {"TP_DOCKER_ID": str(cls.engine_id), "TP_DOCKER_LIVE": cls.live,
                                                "TP_DOCKER_TLS": cls.tls})

    @classmethod
    def docker(cls, *words):
        return subprocess.run(["docker", "-H", f"unix:///tmp/tp-docker-{cls.engine_id}/docker.sock", *words],
                              check=True, capture_output=True, text=True, timeout=120).stdout

    @classmethod
    def setUpClass(cls):
        cls.engine("down", "--purge")
        cls.engine("up")
        cls.addClassCleanup(cls.engine, "down", "--purge")
        cls.d = Deployment()
        cls.addClassCleanup(cls.d.close)
        (cls.d.config / "registry.yaml").write_text(REGISTRY)
        tpd_yaml = cls.d.config / "tpd.yaml"
        tpd_yaml.write_text(tpd_yaml.read_text() + f"""\
  executors:
    - provider: gpu
      profile: box
      backend: docker
      config: {{image: "{cls.image}", image_pull_deadline: 6s}}
backends:
  docker: {cls.address or f'{{host: "unix:///tmp/tp-docker-{cls.engine_id}/docker.sock"}}'}
""")
        cls.d.start()

    def assert_succeeded(self, run):
        self.assertEqual(self.d.wait(run), 0, self.d.show(run))

    def await_running(self, run):
        wait_until(lambda: self.d.step(run)["state"] == "RUNNING", what="the job to run")

    def log(self, run):
        return self.d.tp("logs", run).stdout.decode()


class Containers(EngineTest):
    def test_runs_in_an_image_and_leaves_no_container(self):
        run = self.d.submit("sh", "-c", "echo in a container; ls /bin/busybox", flags=["--profile", "box:2"])
        self.assert_succeeded(run)
        self.assertIn("/bin/busybox", self.log(run))
        wait_until(lambda: not self.docker("ps", "-aq").strip(), what="the container to be removed")

    def test_ranks_find_each_other_by_name(self):
        run = self.d.submit("sh", "-c", 'ping -c 1 -W 5 "$MASTER_ADDR" >/dev/null && echo found $MASTER_ADDR; sleep 8',
                            flags=["--profile", "box:8"])
        self.assert_succeeded(run)
        logs = [self.d.tp("logs", run, "--rank", rank).stdout.decode() for rank in (0, 1)]
        self.assertEqual([log.count("found rank0") for log in logs], [1, 1])

    def test_usage_is_what_the_engine_saw(self):
        run = self.d.submit("sleep", "3", flags=["--profile", "box:2"])
        self.await_running(run)
        seen = json.loads(self.docker("inspect", self.docker("ps", "-q").split()[0]))[0]["State"]["StartedAt"]
        began = datetime.fromisoformat(seen[:26]).replace(tzinfo=timezone.utc)
        self.assert_succeeded(run)
        interval = [one for one in self.d.json("usage", "--audit")["intervals"] if one["run"] == run][0]
        told = datetime.fromisoformat(interval["start"].replace("Z", "+00:00"))
        self.assertLess(abs((told - began).total_seconds()), 1, interval)
        self.assertAlmostEqual(interval["gpu_ms"] / 2 / 1000, 3, delta=1)

    def test_a_missing_image_fails_as_image(self):
        run = self.d.submit("true", flags=["--profile", "box:1", "--image", "127.0.0.1:1/no/such:1"])
        self.assertEqual(self.d.wait(run), 1)
        self.assertEqual(self.d.step(run)["failure"]["kind"], "image", self.d.step(run))
        self.assertIn("connection refused", self.d.step(run)["failure"]["sentence"])

    def test_a_missing_program_is_told(self):
        run = self.d.submit("/no/such/program", flags=["--profile", "box:1"])
        self.assertEqual(self.d.wait(run), 1)
        self.assertIn("ENOENT", self.d.step(run)["failure"]["sentence"])

    def test_four_jobs_of_two_cards_never_hold_more_than_a_box(self):
        self.d.tp("admin", "node", "drain", "box-2")
        self.addCleanup(self.d.tp, "admin", "node", "undrain", "box-2")
        runs = [self.d.submit("sleep", "2", flags=["--profile", "box:2"]) for _ in range(4)]
        most, deadline = 0, time.monotonic() + 60
        while any(self.d.step(run)["state"] != "SUCCEEDED" for run in runs):
            self.assertLess(time.monotonic(), deadline)
            most = max(most, len(self.docker("ps", "-q").split()))
        self.assertLessEqual(most, 2)
        self.assertGreaterEqual(most, 1)


class Tls(EngineTest):
    """Over TCP, as an engine on another machine is reached."""

    engine_id = 41
    tls = "1"
    TLS_DIRECTORY = Path("/tmp/tp-docker-41/tls")

    @classmethod
    def reached_as(cls, name, host="127.0.0.1"):
        return (f"{{host: tcp://{host}:24041, tls_ca: {cls.TLS_DIRECTORY}/ca.pem, "
                f"tls_cert: {cls.TLS_DIRECTORY}/{name}.pem, tls_key: {cls.TLS_DIRECTORY}/{name}.key}}")

    @classmethod
    def setUpClass(cls):
        cls.address = cls.reached_as("client")
        super().setUpClass()

    def restart_as(self, *how):
        self.d.kill()
        tpd_yaml = self.d.config / "tpd.yaml"
        lines = tpd_yaml.read_text().splitlines()
        tpd_yaml.write_text("\n".join(lines[:-1] + [f"  docker: {self.reached_as(*how)}"]) + "\n")
        self.d.start()

    def test_runs_and_is_stopped_and_follows_the_events(self):
        run = self.d.submit("sh", "-c", "echo over tls; sleep 2", flags=["--profile", "box:8"])
        self.assert_succeeded(run)
        self.assertIn("over tls", self.log(run))
        stopped = self.d.submit("sleep", "300", flags=["--profile", "box:2"])
        self.await_running(stopped)
        self.d.tp("stop", stopped)
        self.assertEqual(self.d.wait(stopped), 6)

    def test_who_has_no_right_certificate_or_name_is_told(self):
        for how in (("stranger",), ("client", "localhost")):
            with self.subTest(how=how):
                self.restart_as(*how)
                run = self.d.submit("true", flags=["--profile", "box:1"])
                reason = wait_until(lambda run=run: self.why(run), 60, "the reason to show")
                self.assertRegex(reason, "(?i)certificate|tls|ssl")
                self.d.tp("stop", run)
        self.restart_as("client")
        self.assert_succeeded(self.d.submit("true", flags=["--profile", "box:1"]))

    def why(self, run):
        said = self.d.tp("why", run).stdout.decode()
        return said if "24041" in said or "ertificate" in said else None


class Pool(EngineTest):
    """Jobs of two cards on a box of four, while tpd is killed at random moments."""

    engine_id = 40
    ROUNDS = 25
    JOB = '''read now _ </proc/uptime; echo "began $now"; usleep $1; read now _ </proc/uptime; echo "ended $now"'''

    @staticmethod
    def most_at_once(spans):
        changes = sorted([(began, 1) for began, _ in spans] + [(ended, -1) for _, ended in spans])
        return max(accumulate(change for _, change in changes))

    def span(self, run):
        """When it ran by its own word. Fails where it began twice or did not end."""
        words = self.log(run).split()
        self.assertEqual([words[0], words[2], len(words)], ["began", "ended", 4], words)
        return float(words[1]), float(words[3])

    def test_never_more_than_it_has(self):
        self.d.tp("admin", "node", "drain", "box-2")
        side_by_side = 0
        for round_ in range(self.ROUNDS):
            random = Random(round_)
            with self.subTest(round=round_):
                runs = [self.d.submit("sh", "-c", self.JOB, "job", random.randrange(50_000, 1_500_000),
                                      flags=["--profile", "box:2"]) for _ in range(4)]
                for _ in range(random.randrange(1, 3)):
                    time.sleep(random.uniform(0, 2))
                    self.d.kill()
                    self.d.start()
                for run in runs:
                    self.assert_succeeded(run)
                most = self.most_at_once([self.span(run) for run in runs])
                self.assertLessEqual(most, 2)
                side_by_side += most == 2
        self.assertGreater(side_by_side, self.ROUNDS / 2)


class Example(EngineTest):
    engine_id = 36
    image = "tp-charlm:1"

    def test_charlm_trains_across_two_containers(self):
        subprocess.run([CHARLM / "make-image", self.image], check=True, capture_output=True, timeout=1500,
                       env=os.environ | {"DOCKER_HOST": f"unix:///tmp/tp-docker-{self.engine_id}/docker.sock"})
        shutil.copytree(CHARLM, self.d.work / "charlm")
        run = self.d.submit("python3", "train.py", "--steps", 60, "--hidden", 32, "--seq-len", 32, "--batch", 8,
                            "--log-every", 1, flags=["--profile", "box:8", "--dir", "charlm"])
        self.assertEqual(self.d.wait(run, timeout_s=280), 0, self.d.tp("logs", run).stdout[-2000:])
        losses = [json.loads(line)["loss"] for line in (self.d.attempt_dir(run) / "metrics.jsonl").read_text().splitlines()
                  if "loss" in line]
        self.assertLess(losses[-1], losses[0])
        self.assertTrue((self.d.run_dir(run) / "results" / "main" / "summary.json").exists())


class Outage(EngineTest):
    engine_id = 34
    # Whether containers are ended by the start of an engine that was killed.
    ends_jobs = True

    def test_an_engine_that_dies_ends_nothing_in_tp(self):
        run = self.d.submit("sh", "-c", "sleep 8; echo through", flags=["--profile", "box:2"])
        self.await_running(run)
        self.engine("kill")
        wait_until(lambda: "does not answer" in str(self.d.step(run)), 60, "the reason to show")
        self.assertEqual(self.d.step(run)["state"], "RUNNING")
        self.engine("up")
        code = self.d.wait(run)
        if self.ends_jobs:
            self.assertEqual(code, 1, self.d.show(run))
            self.assertIn(self.d.step(run)["failure"]["kind"], ("evicted", "lost"))
        else:
            self.assertEqual(code, 0, self.d.show(run))
            self.assertEqual(self.log(run).count("through"), 1)

    def test_what_ended_while_the_engine_was_away_is_known_by_its_record(self):
        run = self.d.submit("sh", "-c", "sleep 3; echo once", flags=["--profile", "box:2"])
        self.await_running(run)
        self.engine("kill")
        time.sleep(5)
        self.engine("up")
        self.assert_succeeded(run)
        self.assertEqual(self.log(run).count("once"), 1)


class OutageLive(Outage):
    engine_id = 35
    live = "1"
    ends_jobs = False


class Podman(Containers):
    engine_id = 38
    script = "podman-engine"


class OutagePodman(Outage):
    engine_id = 39
    script = "podman-engine"
    ends_jobs = False


if __name__ == "__main__":
    main()

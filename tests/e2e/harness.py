"""A tpd of its own for each test, with a deployment name of its own, driven through the real `tp`.

Everything lives below one temporary directory; tpd listens on a free loopback
port. Only processes that the test started are ever signalled.
"""

import hashlib
import json
import os
import secrets
import shutil
import signal
import socket
import sqlite3
import subprocess
import tempfile
import time
import unittest
from contextlib import closing
from pathlib import Path

BIN = Path(os.environ["TP_BIN_DIR"])
STARTUP_S = 30

TPD_YAML = """\
server:
  listen: 127.0.0.1:{port}
  deployment: {deployment}
scheduling:
  stop_grace: {stop_grace}
  pause_grace: {pause_grace}
  retry_cooldown: {retry_cooldown}
  infrastructure_retries: {infrastructure_retries}
  user_retries: {user_retries}
  absent_grace: 1s
  relaunch_backoff: {relaunch_backoff}
  relaunch_backoff_max: {relaunch_backoff_max}
  min_flip: 0s
jobs:
  heartbeat: 1s
"""


def wait_until(condition, timeout_s=60.0, what="condition"):
    """Polls `condition` until it returns something true, and returns that."""
    deadline = time.monotonic() + timeout_s
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"timed out after {timeout_s} s waiting for {what}")
        time.sleep(0.02)


def free_port():
    """A loopback port that nobody has now; a restarted tpd keeps it, as a real one would."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def process_start_ticks(pid):
    """Field 22 of /proc/PID/stat, or None when the process is gone or a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] in "ZX" else int(fields[19])


class Deployment:
    """One tpd, its data and a directory to submit from."""

    def __init__(self, binary="tpd", **policy):
        self.root = Path(tempfile.mkdtemp(prefix="tp-e2e-"))
        self.data = self.root / "data"
        self.config = self.root / "config"
        self.work = self.root / "work"
        self.config.mkdir()
        self.work.mkdir()
        settings = {"stop_grace": "5s", "pause_grace": "5s", "infrastructure_retries": 0, "user_retries": 0,
                    "retry_cooldown": "1s", "relaunch_backoff": "1s", "relaunch_backoff_max": "2s",
                    "port": free_port(), "deployment": f"e{secrets.token_hex(4)}"} | policy
        (self.config / "tpd.yaml").write_text(TPD_YAML.format(**settings))
        self.binary = BIN / binary
        self.process = None
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("TP_")}
        self.env |= {"TP_DATA_DIR": str(self.data), "XDG_CACHE_HOME": str(self.root / "cache"), "NO_COLOR": "1"}

    def start(self, wait=True, **env):
        log = open(self.root / "tpd.log", "ab")
        self.process = subprocess.Popen(
            [self.binary, "serve", "--data", self.data, "--config", self.config],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.env | env, start_new_session=True)
        log.close()
        if wait:
            self.wait_ready()
        return self

    def wait_ready(self):
        def ready():
            if self.process.poll() is not None:
                raise AssertionError(f"tpd ended with {self.process.returncode}:\n{self.log_tail()}")
            return self.tp("whoami", check=False).returncode == 0
        wait_until(ready, STARTUP_S, "tpd to answer")

    def log_tail(self):
        return (self.root / "tpd.log").read_text(errors="replace")[-4000:]

    def kill(self, how=signal.SIGKILL):
        """Ends tpd, nothing else, and waits for it."""
        if self.process and self.process.poll() is None:
            self.process.send_signal(how)
            self.process.wait(timeout=30)

    def close(self):
        self.kill(signal.SIGTERM)
        shutil.rmtree(self.root, ignore_errors=True)

    def tp(self, *args, check=True, cwd=None, timeout_s=120, token=None, **kwargs):
        result = subprocess.run([BIN / "tp", *map(str, args)], cwd=cwd or self.work, timeout=timeout_s,
                                env=self.env | ({"TP_TOKEN": token} if token else {}),
                                stdin=subprocess.DEVNULL, capture_output=True, **kwargs)
        if check and result.returncode != 0:
            raise AssertionError(f"tp {' '.join(map(str, args))} exited {result.returncode}\n"
                                 f"{result.stderr.decode(errors='replace')}\n{self.log_tail()}")
        return result

    def json(self, *args):
        return json.loads(self.tp(*args, "-o", "json").stdout)

    def grant(self, user, role):
        """A token of another user. While tpd is down: there is no call that makes one."""
        identity, secret = secrets.token_hex(8), secrets.token_hex(32)
        with closing(sqlite3.connect(self.data / "tpd.db")) as database, database:
            database.execute("INSERT INTO token VALUES (?, ?, ?, ?, 0)",
                             (identity, hashlib.sha256(secret.encode()).hexdigest(), user, role))
        return f"tp_{identity}_{secret}"

    def submit(self, *command, flags=(), check=True):
        """Returns the run's id; with check=False the finished process."""
        result = self.tp("submit", *flags, "--", *command, check=check)
        return result.stdout.decode().strip() if check else result

    def show(self, run):
        return self.json("show", run)["runs"][0]

    def step(self, run):
        return self.show(run)["steps"][0]

    def wait(self, run, *flags, timeout_s=120):
        """The exit code of `tp wait`."""
        return self.tp("wait", run, *flags, check=False, timeout_s=timeout_s).returncode

    def run_dir(self, run):
        owner = self.show(run)["owner"]
        return self.storage() / owner / run

    def storage(self):
        return self.data / "runs"

    def attempt_dir(self, run, attempt=1):
        """Of the first step."""
        shown = self.show(run)
        return self.storage() / shown["owner"] / run / "attempts" / f"{shown['steps'][0]['spec']['name']}-{attempt}"

    def record(self, run, name, attempt=1):
        """A record of docs/launch-contract.md as a dict, None while absent or torn."""
        try:
            lines = (self.attempt_dir(run, attempt=attempt) / name).read_text().splitlines()
        except FileNotFoundError:
            return None
        if not lines or lines[-1] != "end":
            return None
        return dict(line.split("=", 1) for line in lines[1:-1])


class DeploymentTest(unittest.TestCase):
    """A fresh, started deployment as self.d."""

    policy = {}

    def setUp(self):
        self.d = Deployment(**self.policy).start()
        self.addCleanup(self.d.close)

    def assert_ended(self, run, state, kind=None, words=()):
        step = self.d.step(run)
        self.assertEqual(step["state"], state, step)
        if kind:
            self.assertEqual(step["failure"]["kind"], kind, step)
        told = " ".join(str(step.get(part) or "") for part in ("exit", "reason")) + str((step["failure"] or {}).get("sentence"))
        for word in words:
            self.assertIn(word, told)


def main():
    """Runs the module's tests and says how many."""
    program = unittest.main(exit=False, verbosity=2)
    print(f"SCENARIOS e2e {program.result.testsRun - len(program.result.skipped)}", flush=True)
    raise SystemExit(not program.result.wasSuccessful())

"""tpd killed at every commit and at any moment: nothing lost, nothing run twice."""

import random
import signal
import subprocess
import threading
import time
import unittest

from harness import BIN, Deployment, main

RUNS = 30
SUBMITTERS = 4
SHORT_JOBS = 200
RANDOM_KILLS = 20
# Far more than the runs commit.
MAX_LIVES = 900
# No run waits longer than this for its next commit (retry and relaunch delays are below it).
QUIET_S = 8

# Each job appends its run and attempt to one file, in one write.
COMMAND = ("sh", "-c", 'echo "$TP_RUN_ID $TP_ATTEMPT" >>"$LEDGER_OF_TEST"; exit $((TP_NNODES - 1))')


class Witness:
    """What really ran, and what tp says became of it."""

    def __init__(self, deployment):
        self.d = deployment
        self.file = deployment.root / "ran"
        self.file.touch()
        self.acknowledged = []
        self.given_up = False

    def submit(self):
        """Submits until acknowledged; tp repeats a lost call with the same request id."""
        result = self.d.tp("submit", "--env", f"LEDGER_OF_TEST={self.file}", "--", *COMMAND, check=False)
        if result.returncode == 0:
            self.acknowledged.append(result.stdout.decode().strip())
        return result.returncode == 0

    def submit_all(self, count):
        while len(self.acknowledged) < count and not self.given_up:
            self.submit()

    def verify(self, test):
        d = self.d
        for run in self.acknowledged:
            test.assertEqual(d.wait(run, "--timeout", "100s"), 0, f"{run}: {d.step(run)}")
        ran = [line.split() for line in self.file.read_text().splitlines()]
        runs = [run for run, _ in ran]
        test.assertEqual(len(runs), len(set(runs)), "a command ran twice")
        test.assertTrue(set(self.acknowledged) <= set(runs), "an acknowledged run never ran")
        listed = d.json("ls", "-n", "0")["runs"]
        test.assertEqual(len(listed), len({run["id"] for run in listed}))
        test.assertTrue(set(self.acknowledged) <= {run["id"] for run in listed})
        for run in listed:
            test.assertEqual(run["state"], "SUCCEEDED", run)
        fsck = subprocess.run([BIN / "tpd", "fsck", "--data", d.data], capture_output=True)
        test.assertEqual(fsck.returncode, 0, fsck.stderr)


class Crashes(unittest.TestCase):
    def setUp(self):
        self.d = Deployment(binary="tpd-faults")
        self.addCleanup(self.d.close)

    def test_after_every_commit_in_turn(self):
        self.sweep("after-commit")

    def test_before_every_commit_in_turn(self):
        self.sweep("before-commit")

    def sweep(self, side):
        """tpd dies at the first to fifth commit of its life in turn, until all is done.

        Dying after the first commit every time would never let a launch out: what a commit owes
        leaves after it.
        """
        witness = Witness(self.d)
        submitters = [threading.Thread(target=witness.submit_all, args=(RUNS,)) for _ in range(SUBMITTERS)]
        for submitter in submitters:
            submitter.start()
        lives = 0
        try:
            while lives < MAX_LIVES:
                lives += 1
                self.d.start(wait=False, TP_CRASH_AT=f"{side}:{1 + lives % 5}")
                if self.at_rest(submitters):
                    break
        finally:
            witness.given_up = True
            for submitter in submitters:
                submitter.join()
        print(f"{side}: killed at {lives - 1} commits", flush=True)
        self.assertLess(lives, MAX_LIVES)
        self.assertGreaterEqual(lives, RUNS)
        self.d.kill()
        self.d.start()
        witness.verify(self)

    def at_rest(self, submitters):
        """Waits for this life's death; true when all is submitted and no commit is left to die at."""
        quiet_since = time.monotonic()
        while self.d.process.poll() is None:
            if any(submitter.is_alive() for submitter in submitters):
                quiet_since = time.monotonic()
            elif time.monotonic() - quiet_since > QUIET_S:
                return True
            time.sleep(0.005)
        self.assertEqual(self.d.process.returncode, -signal.SIGKILL, self.d.log_tail())
        return False

    def test_at_random_moments_under_many_short_jobs(self):
        self.d.start()
        witness = Witness(self.d)
        moments = random.Random(20261130)
        kill_after = sorted(moments.sample(range(SHORT_JOBS), RANDOM_KILLS))
        submitted = 0
        while submitted < SHORT_JOBS:
            if kill_after and submitted >= kill_after[0]:
                kill_after.pop(0)
                time.sleep(moments.random() * 0.3)
                self.d.kill()
                self.d.start()
            if witness.submit():
                submitted += 1
        witness.verify(self)
        self.assertEqual(kill_after, [])


if __name__ == "__main__":
    main()

"""A storage that runs full or hangs under jobs: what they are is found out afterwards, and nothing is lost."""

import subprocess
import time
import unittest

from harness import Deployment, DeploymentTest, main, wait_until
from hung_directory import HungDirectory

SIZE = "8m"


def waits_for(go, then="exit 0"):
    """A job until the file is there, and no longer than two minutes."""
    return ("sh", "-c", f"i=0; while [ ! -e {go} ] && [ $i -lt 600 ]; do sleep 0.2; i=$((i + 1)); done; {then}")


class Full(unittest.TestCase):
    """The runs are on a file system of their own. Needs root, for the mount."""

    def setUp(self):
        self.d = Deployment()
        self.addCleanup(self.d.close)
        storage = self.d.storage()
        storage.mkdir(parents=True, mode=0o711)
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE},mode=711", "tmpfs", storage], check=True)
        self.addCleanup(subprocess.run, ["umount", "-l", storage], check=True)
        self.addCleanup(self.d.kill)
        self.filler = storage / "filler"
        self.d.start()

    def fill(self):
        subprocess.run(["dd", "if=/dev/zero", f"of={self.filler}", "bs=4k"], check=False, capture_output=True)

    def test_a_job_that_ends_then_is_what_it_was(self):
        go = self.d.root / "go"
        for code, state in ((0, "SUCCEEDED"), (3, "FAILED")):
            with self.subTest(code=code):
                go.unlink(missing_ok=True)
                run = self.d.submit(*waits_for(go, f"exit {code}"))
                wait_until(lambda: self.d.step(run)["state"] == "RUNNING", what="the job to run")
                self.fill()
                go.touch()
                time.sleep(2)
                self.assertIn(self.d.step(run)["state"], ("RUNNING", state))
                self.filler.unlink()
                self.d.wait(run)
                self.assertEqual(self.d.step(run)["state"], state, self.d.show(run))
                self.assertEqual(self.d.step(run)["exit"], f"exit {code}")

    def test_what_cannot_be_laid_down_waits_or_is_refused_and_says_why(self):
        waits = self.d.submit("true", flags=["--hold"])
        self.fill()
        refused = self.d.submit("true", check=False)
        self.d.tp("release", waits)
        why = wait_until(lambda: "No space left" in self.d.tp("why", waits).stdout.decode(), 30, "the reason to show")
        self.assertTrue(why)
        self.filler.unlink()
        self.assertEqual(self.d.wait(waits), 0, self.d.show(waits))
        if refused.returncode == 0:
            self.assertEqual(self.d.wait(refused.stdout.decode().strip()), 0)
        else:
            self.assertIn("No space left", refused.stderr.decode())


class Hung(DeploymentTest):
    """The directory of one attempt hangs, as under a mount whose server is away. Needs root, for fanotify."""

    def test_nothing_is_told_of_it_and_nobody_else_waits(self):
        go = self.d.root / "go"
        hangs = self.d.submit(*waits_for(go))
        beside = [self.d.submit(*waits_for(go), flags=("--profile", "h200:1")) for _ in range(4)]
        for run in (hangs, *beside):
            wait_until(lambda run=run: self.d.step(run)["state"] == "RUNNING", what="the job to run")
        hung = HungDirectory(self.d.attempt_dir(hangs))
        self.addCleanup(hung.mend)
        wait_until(lambda: "in time" in self.d.step(hangs)["state_text"], 60, "the reason to show")
        self.assertEqual(self.d.step(hangs)["state"], "RUNNING")
        began = time.monotonic()
        for run in (self.d.submit("true"), self.d.submit("sh", "-c", "exit 3")):
            self.assertIn(self.d.wait(run, timeout_s=30), (0, 1))
        go.touch()
        for run in beside:
            self.assertEqual(self.d.wait(run, timeout_s=60), 0, self.d.show(run))
        self.assertLess(time.monotonic() - began, 40)
        self.assertEqual(self.d.step(hangs)["state"], "RUNNING", "nobody can know that it has ended")
        hung.mend()
        self.assertEqual(self.d.wait(hangs, timeout_s=60), 0, self.d.show(hangs))


if __name__ == "__main__":
    main()

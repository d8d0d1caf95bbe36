"""Jobs that people leave alone: paused, closed over by a window, killed, and the training is the same in the end."""

import json
import os
import random
import shutil
import signal
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path

from harness import Deployment, DeploymentTest, main, wait_until

CHARLM = Path(__file__).resolve().parents[2] / "examples" / "charlm"
REGISTRY = """\
series:
  g:
    gpus_per_node: 8
    virtual_cards: true
    nodes: [{{name: n1, address: 127.0.0.1}}, {{name: n2, address: 127.0.0.1}}]
{windows}
profiles:
  g: {{series: g, default_shape: 16}}
"""
STEPS = 400
TRAIN = ("/usr/bin/python3", "train.py", "--steps", STEPS, "--hidden", 32, "--seq-len", 32, "--batch", 8,
         "--log-every", 1, "--checkpoint-every", 20)
# A window's edge is a whole minute.
BEFORE_EDGE_S = 10


class Training(DeploymentTest):
    """examples/charlm on two nodes, against a training that nobody interrupted."""

    uninterrupted = None

    def setUp(self):
        self.d = Deployment(user_retries=1)
        self.addCleanup(self.d.close)
        self.write(windows="")
        self.d.start()
        shutil.copytree(CHARLM, self.d.work / "charlm")

    def write(self, windows):
        (self.d.config / "registry.yaml").write_text(REGISTRY.format(windows=windows))

    def train(self, *command):
        return self.d.submit(*(command or TRAIN), flags=("--profile", "g", "--dir", "charlm"))

    def steps_done(self, run):
        """As the metrics of the newest attempt say; 0 before the first."""
        files = sorted((self.d.run_dir(run) / "attempts").glob("main-*/metrics.jsonl"), key=os.path.getmtime)
        lines = files[-1].read_text().splitlines() if files else []
        return json.loads(lines[-1])["step"] if lines else 0

    def summary(self, run):
        return json.loads((self.d.run_dir(run) / "results" / "main" / "summary.json").read_text())

    def expected(self):
        if Training.uninterrupted is None:
            run = self.train()
            self.assertEqual(self.d.wait(run, timeout_s=240), 0)
            Training.uninterrupted = self.summary(run)
        return Training.uninterrupted

    def assert_trained_alike(self, run):
        self.assertEqual(self.d.wait(run, timeout_s=300), 0, self.d.step(run))
        ended, expected = self.summary(run), self.expected()
        print(f"loss {ended['final_loss']:.5f}, uninterrupted {expected['final_loss']:.5f}; "
              f"continued after step {ended['continued_after_step']}")
        self.assertEqual(ended["steps"], expected["steps"])
        self.assertGreater(ended["continued_after_step"], 0, "it began anew")
        for loss in ("final_loss", "held_out_loss"):
            self.assertLess(abs(ended[loss] / expected[loss] - 1), 0.01, loss)

    def assert_told_what_it_lost(self, run):
        lost = wait_until(lambda: [e for e in self.d.json("events", run)["events"] if e["event"] == "checkpoint"], what="what it lost")
        self.assertRegex(lost[0]["note"], r"^newest checkpoint \S*step-\d+\.ckpt: \S+ of work is done again$")
        self.assertRegex(self.d.tp("show", run).stdout.decode(), r"checkpoint +\S*step-\d+\.ckpt: \S+ of work is done")

    def test_paused_at_a_random_step_and_resumed(self):
        run = self.train()
        stop_at = random.randint(20, STEPS // 2)
        wait_until(lambda: self.steps_done(run) >= stop_at, what=f"step {stop_at}")
        self.d.tp("pause", run)
        wait_until(lambda: self.d.show(run)["state"] == "PAUSED", what="PAUSED")
        self.assert_told_what_it_lost(run)
        self.d.tp("resume", run)
        self.assert_trained_alike(run)
        self.assertEqual(self.d.show(run)["retry_count"], 0, "a pause is no failure")

    def test_killed_once_and_retried_from_its_checkpoint(self):
        run = self.train()
        wait_until(lambda: self.steps_done(run) >= 60, what="step 60")
        os.kill(int(self.d.record(run, "0-1.started")["pid"]), signal.SIGKILL)
        self.assert_trained_alike(run)
        shown = self.d.show(run)
        self.assertEqual(shown["retry_count"], 1)
        self.assertIn("SIGKILL", shown["steps"][0]["past_attempts"][0]["exit"])

    def test_a_window_closes_over_it_and_opens_again(self):
        now = datetime.now(timezone.utc)
        close = now.replace(second=0, microsecond=0) + timedelta(minutes=1)
        if (close - now).total_seconds() < BEFORE_EDGE_S:
            close += timedelta(minutes=1)
        time.sleep(max(0.0, (close - datetime.now(timezone.utc)).total_seconds() - BEFORE_EDGE_S))
        reopen = close + timedelta(minutes=1)
        self.write(windows=self.closed_between(close, reopen))
        self.d.tp("admin", "reload")
        run = self.train(*TRAIN[:3], 100_000, *TRAIN[4:])
        wait_until(lambda: self.d.show(run)["state"] == "PAUSED", what="PAUSED by the window")
        paused_at = datetime.now(timezone.utc)
        self.assertIn("its window", self.d.step(run)["reason"])
        # Still to do: as much as the others.
        wait_until(lambda: self.d.show(run)["state"] == "RUNNING", timeout_s=150, what="RUNNING again")
        resumed_at = datetime.now(timezone.utc)
        print(f"paused {(paused_at - close).total_seconds():.1f} s after the edge, running "
              f"{(resumed_at - reopen).total_seconds():.1f} s after the opening")
        self.assertLess(paused_at, reopen)
        self.assertGreaterEqual(resumed_at, reopen)
        log = wait_until(lambda: [line for line in self.d.tp("logs", run, "--attempt", "2").stdout.decode().splitlines()
                                  if "continuing after step" in line], what="the checkpoint to be found")
        self.assertIn("continuing after step", log[0])
        self.assertEqual(self.d.show(run)["retry_count"], 0)
        self.d.tp("stop", run)
        self.d.wait(run)

    @staticmethod
    def closed_between(close, reopen):
        hours = {day: ["00:00-24:00"] for day in
                 ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")}
        for day in {close.date(), reopen.date()}:
            name = day.strftime("%A").lower()
            intervals = []
            if close.date() == day and close.strftime("%H:%M") != "00:00":
                intervals.append(f"00:00-{close:%H:%M}")
            if reopen.date() == day:
                intervals.append(f"{reopen:%H:%M}-24:00")
            hours[name] = intervals
        return ("    windows:\n      - {timezone: UTC, grace: 20s, min_remaining: 0s, open: "
                + json.dumps(hours) + "}\n")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""End-to-end tests of examples/charlm: real ranks as processes, in tp's launch environment."""

import importlib.util
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import unittest
from pathlib import Path
from typing import Dict, List, Optional

TRAIN = Path(__file__).resolve().parents[2] / "examples" / "charlm" / "train.py"
SMALL_MODEL = ["--hidden", "24", "--seq-len", "24", "--batch", "4", "--log-every", "1",
               "--checkpoint-every", "25", "--seed", "7"]
ENDLESS = 10**9
RANK_TIMEOUT_S = 120
SKIPPED_EXIT_CODE = 77
LAUNCHER_VARIABLES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")


def free_port() -> int:
    """Below the range from which the kernel gives ports to connections of other tests."""
    while True:
        port = random.randint(10000, 32000)
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) != 0:
                return port


class Attempt:
    """The ranks of one attempt, one process per node."""

    def __init__(self, run: "Run", nodes: int, steps: int, extra: List[str]):
        run.attempts += 1
        self.pause_file = run.root / f"pause-{run.attempts}"
        self.metrics_file = run.root / f"metrics-{run.attempts}.jsonl"
        env = {name: value for name, value in os.environ.items()
               if name not in LAUNCHER_VARIABLES and not name.startswith(("TP_", "PET_"))}
        env.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(free_port()), TP_POOL_INDEX="0",
                   TP_NNODES=str(nodes), TP_GPUS_PER_NODE="8", TP_WORLD_SIZE=str(nodes * 8),
                   TP_OUTPUT_DIR=str(run.output), TP_RESULTS_DIR=str(run.results),
                   TP_METRICS_FILE=str(self.metrics_file), TP_PAUSE_FILE=str(self.pause_file),
                   PYTHONDONTWRITEBYTECODE="1")
        command = [sys.executable, str(TRAIN), "--steps", str(steps), *SMALL_MODEL, *extra]
        self.ranks = [
            subprocess.Popen(command, env=dict(env, TP_NODE_RANK=str(rank)), text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            for rank in range(nodes)]
        self.output = ""
        self._watchdog = threading.Timer(RANK_TIMEOUT_S, self._kill_ranks)
        self._watchdog.start()

    def wait_for_step(self, step: int) -> None:
        for line in self.ranks[0].stdout:
            self.output += line
            if line.startswith("step") and int(line.split()[1].split("/")[0]) >= step:
                return
        raise AssertionError(f"rank 0 ended before step {step}:\n{self.output}")

    def finish(self) -> List[int]:
        """Waits for all ranks; their exit codes."""
        for rank in self.ranks:
            self.output += rank.stdout.read()
        return [rank.wait() for rank in self.ranks]

    def close(self) -> None:
        self._watchdog.cancel()
        self._kill_ranks()
        for rank in self.ranks:
            rank.wait()
            rank.stdout.close()

    def _kill_ranks(self) -> None:
        for rank in self.ranks:
            rank.kill()

    def losses(self) -> Dict[int, float]:
        lines = self.metrics_file.read_text().splitlines()
        return {record["step"]: record["loss"] for record in map(json.loads, lines)}


class Run:
    """The directories that the attempts of one run share."""

    def __init__(self, root: Path):
        self.root = root
        self.output = root / "output"
        self.results = root / "results"
        self.attempts = 0

    def checkpoints(self) -> List[Path]:
        return sorted((self.output / "checkpoints").glob("step-*.ckpt"))

    def newest_step(self) -> int:
        return int(self.checkpoints()[-1].stem.split("-")[1])

    def summary(self) -> dict:
        return json.loads((self.results / "summary.json").read_text())


class CharlmTest(unittest.TestCase):
    _reference: Dict[int, float] = {}

    def new_run(self) -> Run:
        directory = tempfile.TemporaryDirectory(prefix="charlm-test-")
        self.addCleanup(directory.cleanup)
        return Run(Path(directory.name))

    def start(self, run: Run, nodes: int, steps: int, extra: Optional[List[str]] = None) -> Attempt:
        attempt = Attempt(run, nodes, steps, extra or [])
        self.addCleanup(attempt.close)
        return attempt

    def complete(self, attempt: Attempt) -> None:
        exit_codes = attempt.finish()
        self.assertEqual(exit_codes, [0] * len(exit_codes), attempt.output)

    def reference_losses(self, steps: int) -> Dict[int, float]:
        """Losses of an uninterrupted run of two ranks, at least `steps` long."""
        if steps not in CharlmTest._reference:
            attempt = self.start(self.new_run(), 2, max(steps, 150))
            self.complete(attempt)
            CharlmTest._reference = attempt.losses()
        return CharlmTest._reference

    def check_stopped_and_continues(self, run: Run, interrupted: Attempt) -> None:
        self.complete(interrupted)
        stopped_at = run.newest_step()
        self.assertIn(f"stopped after step {stopped_at} by", interrupted.output)
        self.assertFalse((run.results / "summary.json").exists())
        self.assertEqual(sorted(interrupted.losses()), list(range(1, stopped_at + 1)))
        self.check_continues(run)

    def check_continues(self, run: Run) -> None:
        """The steps after the checkpoint are done, and end where an uninterrupted run ends."""
        saved_step = run.newest_step()
        total = saved_step + 20
        continued = self.start(run, 2, total)
        self.complete(continued)
        self.assertEqual(sorted(continued.losses()), list(range(saved_step + 1, total + 1)))
        summary = run.summary()
        self.assertEqual(summary["steps"], total)
        self.assertEqual(summary["continued_after_step"], saved_step)
        expected = self.reference_losses(total)[total]
        self.assertAlmostEqual(summary["final_loss"], expected, delta=0.01 * expected)

    def check_stops_on_signal(self, number: signal.Signals, signalled_ranks: List[int]) -> None:
        run = self.new_run()
        attempt = self.start(run, 2, ENDLESS)
        attempt.wait_for_step(10)
        for rank in signalled_ranks:
            attempt.ranks[rank].send_signal(number)
        self.check_stopped_and_continues(run, attempt)

    def test_loss_falls_and_results_are_written(self):
        run = self.new_run()
        attempt = self.start(run, 2, 150)
        self.complete(attempt)
        losses = attempt.losses()
        self.assertEqual(sorted(losses), list(range(1, 151)))
        self.assertLess(losses[150], 0.8 * losses[1])
        summary = run.summary()
        self.assertEqual((summary["steps"], summary["ranks"]), (150, 2))
        self.assertAlmostEqual(summary["final_loss"], losses[150], places=5)
        self.assertGreater(summary["chars_per_s"], 0)
        self.assertGreater(len((run.results / "sample.txt").read_text()), 100)
        self.assertEqual([path.name for path in run.checkpoints()],
                         ["step-000000125.ckpt", "step-000000150.ckpt"])

    def test_warning_signal_to_all_ranks(self):
        self.check_stops_on_signal(signal.SIGUSR1, [0, 1])

    def test_warning_signal_to_one_rank_stops_all(self):
        self.check_stops_on_signal(signal.SIGUSR1, [1])

    def test_term_to_all_ranks(self):
        self.check_stops_on_signal(signal.SIGTERM, [0, 1])

    def test_pause_file(self):
        run = self.new_run()
        attempt = self.start(run, 2, ENDLESS)
        attempt.wait_for_step(10)
        attempt.pause_file.touch()
        self.check_stopped_and_continues(run, attempt)

    def test_kill_loses_only_the_steps_since_the_checkpoint(self):
        run = self.new_run()
        attempt = self.start(run, 2, ENDLESS)
        attempt.wait_for_step(30)
        attempt.close()
        self.assertEqual(run.newest_step() % 25, 0)
        self.check_continues(run)

    def test_torn_checkpoint_is_skipped(self):
        run = self.new_run()
        self.complete(self.start(run, 1, 50))
        older, newest = run.checkpoints()
        newest.write_bytes(newest.read_bytes()[:-100])
        continued = self.start(run, 1, 60)
        self.complete(continued)
        self.assertIn(f"skipping the torn checkpoint {newest}", continued.output)
        self.assertEqual(run.summary()["continued_after_step"], 25)
        self.assertEqual(sorted(continued.losses()), list(range(26, 61)))
        self.assertNotIn(older, run.checkpoints())

    def test_only_torn_checkpoints_begin_anew(self):
        run = self.new_run()
        self.complete(self.start(run, 1, 5))
        for path in run.checkpoints():
            path.write_bytes(b"")
        continued = self.start(run, 1, 5)
        self.complete(continued)
        self.assertEqual(sorted(continued.losses()), [1, 2, 3, 4, 5])

    def test_finished_run_started_again_writes_the_same_result(self):
        run = self.new_run()
        self.complete(self.start(run, 1, 5))
        first = run.summary()
        self.complete(self.start(run, 1, 5))
        self.assertEqual(run.summary()["final_loss"], first["final_loss"])
        self.assertEqual(run.summary()["held_out_loss"], first["held_out_loss"])

    def test_number_of_ranks_does_not_change_the_training(self):
        attempt = self.start(self.new_run(), 1, 20)
        self.complete(attempt)
        expected = self.reference_losses(20)[20]
        self.assertAlmostEqual(attempt.losses()[20], expected, delta=0.01 * expected)

    def test_local_workers_stop_together(self):
        run = self.new_run()
        attempt = self.start(run, 1, ENDLESS, ["--workers", "2"])
        attempt.wait_for_step(10)
        attempt.ranks[0].send_signal(signal.SIGUSR1)
        self.check_stopped_and_continues(run, attempt)

    def test_checkpoint_of_another_model_is_refused(self):
        run = self.new_run()
        self.complete(self.start(run, 1, 5))
        attempt = self.start(run, 1, 10, ["--hidden", "16"])
        self.assertEqual(attempt.finish(), [1])
        self.assertIn("is of another model (--hidden 24)", attempt.output)
        self.assertNotIn("Traceback", attempt.output)


if __name__ == "__main__":
    if importlib.util.find_spec("torch") is None:
        print("python3-torch is not installed")
        sys.exit(SKIPPED_EXIT_CODE)
    unittest.main(verbosity=2)

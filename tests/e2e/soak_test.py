"""A soak of a hundred kills; scripts/soak makes a thousand."""

import tempfile
import unittest
from pathlib import Path

from harness import main
from soak import Soak, Witness

KILLS = 100
MINUTES = 12


class Judgement(unittest.TestCase):
    """What the soak would say of a tpd that is wrong."""

    KEY = ("train-1", "main", 1)
    GOOD = ("start train-1 main 1 0 0 1000 77", "start train-1 main 1 0 1 1010 78",
            "end train-1 main 1 0 0 3000 0", "end train-1 main 1 0 1 3010 0")

    def witness(self, *lines):
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "witness"
            path.write_text("".join(f"{line}\n" for line in lines))
            return Witness(path)

    def judged(self, lines, state, *gpu_ms):
        """The kinds of problems that are found. `gpu_ms`: of each row of the bill."""
        soak = Soak(kills=0, seed=1, minutes=1)
        witness = self.witness(*lines)
        step = {"spec": {"name": "main", "profiles": ["g:16"]}, "state": state, "failure": {"kind": "lost"},
                "past_attempts": [{"number": 1}]}
        soak.verdict.add("launched twice", witness.launched_twice())
        soak.judge_end("train-1", step, witness, asked_to_end=set())
        intervals = [{"run": "train-1", "step": 1, "attempt": 1, "pool": 0, "gpu_ms": row, "cards": 16, "delta": False,
                      "flagged": False} for row in gpu_ms]
        soak.judge_usage(intervals, {("train-1", 1): step}, witness)
        return {what for what, sentences in soak.verdict.problems.items() if sentences}

    def test_a_true_report_has_no_problem(self):
        self.assertEqual(self.judged(self.GOOD, "SUCCEEDED", 2000 * 16), set())
        self.assertEqual(self.judged(self.GOOD, "SUCCEEDED", 2050 * 16), set())

    def test_a_bill_over_the_end_of_a_month_is_the_sum_of_its_rows(self):
        self.assertEqual(self.judged(self.GOOD, "SUCCEEDED", 700 * 16, 1300 * 16), set())
        self.assertEqual(self.judged(self.GOOD, "SUCCEEDED", 700 * 16, 1200 * 16), {"billed wrongly"})

    def test_a_false_end_is_found(self):
        self.assertEqual(self.judged(self.GOOD[:3], "SUCCEEDED", 2000 * 16), {"false SUCCEEDED"})
        failed = (*self.GOOD[:3], "end train-1 main 1 0 1 3010 3")
        self.assertEqual(self.judged(failed, "SUCCEEDED", 2000 * 16), {"false SUCCEEDED"})
        self.assertEqual(self.judged((), "SUCCEEDED"), {"false SUCCEEDED", "lost"})
        self.assertEqual(self.judged(self.GOOD, "FAILED", 2000 * 16), {"false FAILED"})

    def test_a_second_launch_is_found(self):
        self.assertEqual(self.judged((*self.GOOD, self.GOOD[0]), "SUCCEEDED", 2000 * 16), {"launched twice"})
        alive = "twice train-1 main 1 0 0 0 0"
        self.assertEqual(self.judged((*self.GOOD, alive), "SUCCEEDED", 2000 * 16), {"launched twice"})

    def test_a_wrong_bill_is_found(self):
        self.assertEqual(self.judged(self.GOOD, "SUCCEEDED", 2051 * 16), {"billed wrongly"})
        self.assertEqual(self.judged(self.GOOD, "SUCCEEDED", 1900 * 16), {"billed wrongly"})
        self.assertEqual(self.judged(self.GOOD, "SUCCEEDED"), {"not billed"})


class Kills(unittest.TestCase):
    def test_nothing_is_lost_run_twice_or_billed_wrongly(self):
        soak = Soak(kills=KILLS, seed=20261130, minutes=MINUTES, say=lambda line: print(line, flush=True))
        self.assertTrue(soak.run(), dict(soak.verdict.problems))


if __name__ == "__main__":
    main()

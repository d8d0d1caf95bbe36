"""What rank 0 tells: progress for people, metrics and results for tp."""

import json
import time
from pathlib import Path
from typing import Any, Dict

from atomic_file import write_atomically


class Progress:
    """Progress lines and metrics of this attempt, which resumed after `first_step` steps."""

    def __init__(self, metrics_file: Path, first_step: int, steps: int, characters_per_step: int):
        metrics_file.parent.mkdir(parents=True, exist_ok=True)
        self._metrics = open(metrics_file, "a", encoding="utf-8")
        self._first_step = first_step
        self._steps = steps
        self._characters_per_step = characters_per_step
        self._started_s = time.monotonic()

    def step_done(self, step: int, loss: float) -> None:
        record = {"step": step, "loss": round(loss, 6), "time_unix_ms": time.time_ns() // 1_000_000}
        self._metrics.write(json.dumps(record) + "\n")
        self._metrics.flush()
        print(f"step {step:>{len(str(self._steps))}}/{self._steps}  loss {loss:.4f}  "
              f"{self.characters_per_s(step):,.0f} chars/s", flush=True)

    def characters_per_s(self, step: int) -> float:
        elapsed_s = time.monotonic() - self._started_s
        return (step - self._first_step) * self._characters_per_step / elapsed_s

    def close(self) -> None:
        self._metrics.close()


def write_results(directory: Path, summary: Dict[str, Any], sample: str) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    write_atomically(directory / "sample.txt", sample.encode("utf-8"))
    write_atomically(directory / "summary.json", (json.dumps(summary, indent=2) + "\n").encode())

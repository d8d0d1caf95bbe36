"""Where a run reads and writes: the directories of tp's launch contract, or a local stand-in."""

from dataclasses import dataclass
from pathlib import Path
from typing import Mapping, Optional


@dataclass(frozen=True)
class Paths:
    checkpoints: Path
    export: Path
    results: Path
    metrics_file: Path
    pause_file: Optional[Path]

    @staticmethod
    def from_env(env: Mapping[str, str]) -> "Paths":
        output = Path(env.get("TP_OUTPUT_DIR", "charlm-output"))
        pause_file = env.get("TP_PAUSE_FILE")
        return Paths(
            checkpoints=output / "checkpoints",
            export=output / "export",
            results=Path(env.get("TP_RESULTS_DIR", output / "results")),
            metrics_file=Path(env.get("TP_METRICS_FILE", output / "metrics.jsonl")),
            pause_file=Path(pause_file) if pause_file else None,
        )

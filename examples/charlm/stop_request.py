"""Collects the ways in which a process is asked to stop early, for the training loop to poll."""

import signal
from pathlib import Path
from typing import Optional


class StopRequest:
    def __init__(self, pause_file: Optional[Path]):
        self._pause_file = pause_file
        self._signal_name: Optional[str] = None

    def listen(self, *signals: signal.Signals) -> None:
        for number in signals:
            signal.signal(number, self._on_signal)

    def reason(self) -> Optional[str]:
        """Why this process has been asked to stop, or None."""
        if self._signal_name:
            return self._signal_name
        if self._pause_file and self._pause_file.exists():
            return "the pause file"
        return None

    def _on_signal(self, number, _frame) -> None:
        self._signal_name = signal.Signals(number).name

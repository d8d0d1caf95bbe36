"""Checkpoints on storage. One process writes; the newest valid one wins.

File: the SHA-256 of the payload, then the payload as torch.save writes it.
"""

import hashlib
import io
import re
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

import torch

from atomic_file import write_atomically

KEPT = 2
DIGEST_BYTES = hashlib.sha256().digest_size
NAME = re.compile(r"step-(\d+)\.ckpt")


def save(directory: Path, state: Dict[str, Any]) -> None:
    """Writes the checkpoint of state["step"] and drops those it makes superfluous."""
    step = state["step"]
    payload = io.BytesIO()
    torch.save(state, payload)
    content = payload.getvalue()
    directory.mkdir(parents=True, exist_ok=True)
    write_atomically(directory / f"step-{step:09d}.ckpt",
                     hashlib.sha256(content).digest() + content)
    _prune(directory, step)


def load_newest(directory: Path) -> Optional[Dict[str, Any]]:
    for _, path in _by_step(directory):
        content = path.read_bytes()
        digest, payload = content[:DIGEST_BYTES], content[DIGEST_BYTES:]
        if hashlib.sha256(payload).digest() == digest:
            return torch.load(io.BytesIO(payload), map_location="cpu")
        print(f"skipping the torn checkpoint {path}", flush=True)
    return None


def _by_step(directory: Path) -> List[Tuple[int, Path]]:
    """Newest first."""
    found = [(NAME.fullmatch(path.name), path) for path in directory.glob("*")]
    return sorted(((int(match[1]), path) for match, path in found if match), reverse=True)


def _prune(directory: Path, newest_step: int) -> None:
    """Later steps than the one just written can only be torn ones that load_newest skipped."""
    checkpoints = _by_step(directory)
    kept = [path for step, path in checkpoints if step <= newest_step][:KEPT]
    for _, path in checkpoints:
        if path not in kept:
            path.unlink()

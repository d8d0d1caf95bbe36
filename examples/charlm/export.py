#!/usr/bin/env python3
"""Writes the newest checkpoint's weights as safetensors, which needs neither torch nor pickle to read."""

import os
import shutil

import checkpoint
import portable
from errors import CharlmError, run
from paths import Paths


def main() -> int:
    paths = Paths.from_env(os.environ)
    state = checkpoint.load_newest(paths.checkpoints)
    if state is None:
        raise CharlmError(f"there is no checkpoint in {paths.checkpoints}: train first")
    tensors = {name: tensor.cpu() for name, tensor in state["model"].items()}
    metadata = {"step": str(state["step"]), "hidden": str(state["hidden"]),
                "vocabulary": state["vocabulary"]}
    paths.export.mkdir(parents=True, exist_ok=True)
    weights = paths.export / portable.FILE_NAME
    portable.save(weights, tensors, metadata)
    paths.results.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(weights, paths.results / portable.FILE_NAME)
    count = sum(tensor.numel() for tensor in tensors.values())
    print(f"exported {count:,} weights of step {state['step']} to {weights}", flush=True)
    return 0


if __name__ == "__main__":
    run(main)

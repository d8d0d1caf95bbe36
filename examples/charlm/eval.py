#!/usr/bin/env python3
"""Perplexity of the exported weights on text that training did not see."""

import argparse
import json
import math
import os

import portable
from atomic_file import write_atomically
from data import Corpus
from errors import CharlmError, run
from model import CharModel, mean_loss
from paths import Paths


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--text", default="/usr/share/common-licenses/GPL-3",
                        help="the text that was learned")
    parser.add_argument("--seq-len", type=int, default=64, help="characters per sequence")
    return parser.parse_args()


def main() -> int:
    args = parse_args()
    paths = Paths.from_env(os.environ)
    weights = paths.export / portable.FILE_NAME
    if not weights.exists():
        raise CharlmError(f"{weights} is missing: export first")
    tensors, metadata = portable.load(weights)
    corpus = Corpus.load(args.text, args.seq_len)
    if metadata["vocabulary"] != corpus.vocabulary:
        raise CharlmError(f"{args.text} has other characters than the text that was learned")
    model = CharModel(len(corpus.vocabulary), int(metadata["hidden"]))
    model.load_state_dict(tensors)
    loss = mean_loss(model, *corpus.held_out_batch(args.seq_len))
    result = {"step": int(metadata["step"]), "held_out_loss": loss, "perplexity": math.exp(loss)}
    paths.results.mkdir(parents=True, exist_ok=True)
    write_atomically(paths.results / "perplexity.json",
                     (json.dumps(result, indent=2) + "\n").encode())
    print(f"perplexity {result['perplexity']:.3f} on held-out text, after {result['step']} steps",
          flush=True)
    return 0


if __name__ == "__main__":
    run(main)

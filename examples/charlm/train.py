#!/usr/bin/env python3
"""Trains a small character-level language model, data-parallel over the ranks of a tp job."""

import argparse
import os
import signal

import ranks
from errors import run
from paths import Paths
from stop_request import StopRequest


def positive_int(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{value} is not a positive number")
    return value


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--text", default="/usr/share/common-licenses/GPL-3",
                        help="the text to learn")
    parser.add_argument("--steps", type=positive_int, default=500,
                        help="total number of steps, those of earlier attempts included")
    parser.add_argument("--hidden", type=positive_int, default=96, help="width of the GRU")
    parser.add_argument("--seq-len", type=positive_int, default=64, help="characters per sequence")
    parser.add_argument("--batch", type=positive_int, default=16,
                        help="sequences per step, shared out over all ranks")
    parser.add_argument("--learning-rate", type=float, default=5e-3, help="of Adam, constant")
    parser.add_argument("--checkpoint-every", type=positive_int, default=50, help="in steps")
    parser.add_argument("--log-every", type=positive_int, default=10,
                        help="steps between progress lines and metrics")
    parser.add_argument("--seed", type=int, default=1, help="of the weights and the data order")
    parser.add_argument("--workers", type=positive_int, default=None,
                        help="ranks on this node; without it one per real card, else one")
    return parser.parse_args()


def main() -> int:
    args = parse_args()
    paths = Paths.from_env(os.environ)
    stop = StopRequest(paths.pause_file)
    # Before torch is imported, which takes a second: tp warns only processes that catch the signal.
    stop.listen(signal.SIGUSR1)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())  # a local worker inherits a blocking one

    placement = ranks.placement_by_launcher(os.environ)
    if placement is None:
        node = ranks.Node.from_env(os.environ)
        workers = args.workers or ranks.default_workers(node)
        if workers > 1:
            return ranks.run_local_workers(node, workers)
        placement = ranks.Placement(rank=node.rank, world_size=node.count, local_rank=0)

    from training import train
    train(args, paths, placement, stop)
    return 0


if __name__ == "__main__":
    run(main)

"""Which rank this process is, and the local workers of a node that runs several ranks."""

import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from typing import Mapping, Optional

from errors import CharlmError


@dataclass(frozen=True)
class Placement:
    rank: int
    world_size: int
    local_rank: int


@dataclass(frozen=True)
class Node:
    count: int
    rank: int
    cards: int

    @staticmethod
    def from_env(env: Mapping[str, str]) -> "Node":
        """From tp's environment; without one, this machine alone."""
        if env.get("TP_POOL_INDEX", "0") != "0":
            raise CharlmError("charlm trains in one pool of nodes; submit it with a single profile")
        node = Node(count=int(env.get("TP_NNODES", "1")), rank=int(env.get("TP_NODE_RANK", "0")),
                    cards=int(env.get("TP_GPUS_PER_NODE", "0")))
        if not 0 <= node.rank < node.count:
            raise CharlmError(f"TP_NODE_RANK is {node.rank}, but TP_NNODES is {node.count}; "
                              "ranks count from 0")
        return node


def placement_by_launcher(env: Mapping[str, str]) -> Optional[Placement]:
    """The placement that torchrun, or run_local_workers, has given this very process."""
    if "RANK" not in env or "WORLD_SIZE" not in env:
        return None
    return Placement(rank=int(env["RANK"]), world_size=int(env["WORLD_SIZE"]),
                     local_rank=int(env.get("LOCAL_RANK", "0")))


def default_workers(node: Node) -> int:
    """One per card where the cards are real; virtual ones share the CPU, so one for all of them."""
    import torch
    real_cards = torch.cuda.device_count()
    if real_cards == 0 or node.cards == 0:
        return 1
    if real_cards < node.cards:
        raise CharlmError(f"this node was to have {node.cards} cards, but torch sees {real_cards}; "
                          "look at CUDA_VISIBLE_DEVICES and the driver, or pass --workers")
    return node.cards


def run_local_workers(node: Node, workers: int) -> int:
    """Runs this command once per local rank, passes signals on, returns the exit code of the node.

    The first failure kills the other workers, which would wait for the failed one.
    """
    forwarded = {signal.SIGUSR1, signal.SIGTERM, signal.SIGINT}
    awaited = forwarded | {signal.SIGCHLD}
    # Workers inherit the mask: a signal that comes too early waits until they are ready for it.
    signal.pthread_sigmask(signal.SIG_BLOCK, awaited)
    running = [_start_worker(node, workers, local_rank) for local_rank in range(workers)]
    exit_code = 0
    while running:
        received = signal.sigwait(awaited)
        if received in forwarded:
            for worker in running:
                worker.send_signal(received)
        ended = [worker for worker in running if worker.poll() is not None]
        running = [worker for worker in running if worker not in ended]
        failed = [worker for worker in ended if worker.returncode != 0]
        if failed and exit_code == 0:
            exit_code = _shell_exit_code(failed[0].returncode)
            for worker in running:
                worker.kill()
    return exit_code


def _start_worker(node: Node, workers: int, local_rank: int) -> subprocess.Popen:
    env = dict(os.environ, LOCAL_RANK=str(local_rank), WORLD_SIZE=str(node.count * workers),
               RANK=str(node.rank * workers + local_rank))
    return subprocess.Popen([sys.executable, *sys.argv], env=env)


def _shell_exit_code(returncode: int) -> int:
    return returncode if returncode >= 0 else 128 - returncode

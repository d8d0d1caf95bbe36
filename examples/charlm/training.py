"""The data-parallel training loop: one process per rank, gradients summed over all ranks."""

import argparse
import os
import signal
from typing import Any, Dict, Optional, Tuple

import torch
import torch.distributed as dist

import checkpoint
from data import Corpus
from errors import CharlmError
from model import CharModel, mean_loss, sample
from paths import Paths
from ranks import Placement
from report import Progress, write_results
from stop_request import StopRequest

MAX_GRADIENT_NORM = 1.0
SAMPLE_LENGTH = 400


def train(args: argparse.Namespace, paths: Paths, placement: Placement, stop: StopRequest) -> None:
    """Trains up to args.steps or until any rank is asked to stop; a checkpoint is saved then."""
    if args.batch < placement.world_size:
        raise CharlmError(f"--batch {args.batch} leaves some of the {placement.world_size} ranks "
                          f"without a sequence; use at least {placement.world_size}")
    torch.set_num_threads(1)
    device = _join(placement)
    # Only now: until here there is nothing to save, and joining would not notice a request.
    stop.listen(signal.SIGTERM, signal.SIGINT)
    try:
        Trainer(args, paths, placement, device, stop).run()
    finally:
        if dist.is_initialized():
            dist.destroy_process_group()


def _join(placement: Placement) -> torch.device:
    """Meets the other ranks at MASTER_ADDR:MASTER_PORT."""
    on_cards = torch.cuda.is_available()
    if on_cards:
        torch.cuda.set_device(placement.local_rank)
    if placement.world_size > 1:
        if "MASTER_ADDR" not in os.environ or "MASTER_PORT" not in os.environ:
            raise CharlmError(f"{placement.world_size} ranks need MASTER_ADDR and MASTER_PORT to "
                              "meet; tp and torchrun set them, else set them to rank 0's host "
                              "and a free port there")
        if os.environ["MASTER_ADDR"] in ("127.0.0.1", "localhost"):
            os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
        dist.init_process_group("nccl" if on_cards else "gloo", rank=placement.rank,
                                world_size=placement.world_size)
    return torch.device("cuda", placement.local_rank) if on_cards else torch.device("cpu")


class GradientBuffer:
    """The gradients of a model as views of one flat tensor, reduced in one call.

    Two more values travel with them: the loss, and whether any rank wants to stop, so that all
    ranks leave the loop after the same step.
    """

    def __init__(self, model: torch.nn.Module, device: torch.device):
        parameters = list(model.parameters())
        self._flat = torch.zeros(sum(p.numel() for p in parameters) + 2, device=device)
        offset = 0
        for parameter in parameters:
            parameter.grad = self._flat[offset:offset + parameter.numel()].view_as(parameter)
            offset += parameter.numel()

    def clear(self) -> None:
        self._flat.zero_()

    def sum_over_ranks(self, loss: torch.Tensor, wants_stop: bool) -> Tuple[float, bool]:
        """The loss of the whole batch, and whether any rank wants to stop."""
        self._flat[-2] = loss
        self._flat[-1] = float(wants_stop)
        if dist.is_initialized():
            dist.all_reduce(self._flat)
        return self._flat[-2].item(), self._flat[-1].item() > 0


class Trainer:
    def __init__(self, args: argparse.Namespace, paths: Paths, placement: Placement,
                 device: torch.device, stop: StopRequest):
        self._args = args
        self._paths = paths
        self._placement = placement
        self._device = device
        self._stop = stop
        self._corpus = Corpus.load(args.text, args.seq_len)
        torch.manual_seed(args.seed)
        self._model = CharModel(len(self._corpus.vocabulary), args.hidden).to(device)
        self._optimizer = torch.optim.Adam(self._model.parameters(), lr=args.learning_rate)
        self._gradients = GradientBuffer(self._model, device)
        self._step = 0
        self._loss: Optional[float] = None

    def run(self) -> None:
        self._resume()
        progress = self._open_progress()
        saved_step = first_step = self._step
        stopping = False
        while self._step < self._args.steps and not stopping:
            stopping = self._train_step()
            if progress and (self._step in (1, self._args.steps) or stopping
                             or self._step % self._args.log_every == 0):
                progress.step_done(self._step, self._loss)
            if self._step % self._args.checkpoint_every == 0:
                self._save()
                saved_step = self._step
        if saved_step != self._step:
            self._save()
        if progress:
            self._finish(progress, first_step)
            progress.close()
        if dist.is_initialized():
            dist.barrier()  # No rank reports success before rank 0 has everything on storage.

    @property
    def _is_first_rank(self) -> bool:
        return self._placement.rank == 0

    def _train_step(self) -> bool:
        """One step; whether any rank wants to stop after it."""
        args = self._args
        rows = slice(self._placement.rank, None, self._placement.world_size)
        inputs, targets = self._corpus.batch(args.seed, self._step, rows, args.batch, args.seq_len)
        self._gradients.clear()
        loss = self._model.loss_sum(inputs.to(self._device), targets.to(self._device))
        loss = loss / (args.batch * args.seq_len)
        loss.backward()
        self._loss, stopping = self._gradients.sum_over_ranks(loss.detach(),
                                                              self._stop.reason() is not None)
        torch.nn.utils.clip_grad_norm_(self._model.parameters(), MAX_GRADIENT_NORM)
        self._optimizer.step()
        self._step += 1
        return stopping

    def _resume(self) -> None:
        """Rank 0 chooses for all, so that ranks with different views of the storage agree."""
        state = checkpoint.load_newest(self._paths.checkpoints) if self._is_first_rank else None
        if dist.is_initialized():
            box = [state]
            dist.broadcast_object_list(box)
            state = box[0]
        if state is None:
            return
        if state["hidden"] != self._args.hidden or state["vocabulary"] != self._corpus.vocabulary:
            raise CharlmError(f"the checkpoint in {self._paths.checkpoints} is of another model "
                              f"(--hidden {state['hidden']}) or text; use the same options, or "
                              "move the checkpoints away to begin anew")
        self._model.load_state_dict(state["model"])
        self._optimizer.load_state_dict(state["optimizer"])
        self._step = state["step"]
        self._loss = state["loss"]

    def _save(self) -> None:
        """The step stands for all random state too: weights and data order derive from the seed."""
        if not self._is_first_rank:
            return
        checkpoint.save(self._paths.checkpoints, {
            "step": self._step,
            "loss": self._loss,
            "model": self._model.state_dict(),
            "optimizer": self._optimizer.state_dict(),
            "hidden": self._args.hidden,
            "vocabulary": self._corpus.vocabulary,
        })

    def _open_progress(self) -> Optional[Progress]:
        if not self._is_first_rank:
            return None
        args = self._args
        parameters = sum(p.numel() for p in self._model.parameters())
        origin = f"continuing after step {self._step}" if self._step else "from scratch"
        print(f"charlm: {parameters:,} parameters, {self._placement.world_size} rank(s) on "
              f"{self._device.type}, {origin}", flush=True)
        return Progress(self._paths.metrics_file, self._step, args.steps,
                        args.batch * args.seq_len)

    def _finish(self, progress: Progress, first_step: int) -> None:
        if self._step < self._args.steps:
            reason = self._stop.reason() or "a request to another rank"
            print(f"stopped after step {self._step} by {reason}; checkpoint saved", flush=True)
            return
        summary, text = self._results(progress, first_step)
        write_results(self._paths.results, summary, text)
        print(f"done: {self._step} steps, loss {self._loss:.4f}, held-out loss "
              f"{summary['held_out_loss']:.4f}, results in {self._paths.results}", flush=True)
        print(f"sample:\n{text}", flush=True)

    def _results(self, progress: Progress, first_step: int) -> Tuple[Dict[str, Any], str]:
        args = self._args
        characters_per_s = progress.characters_per_s(self._step)
        inputs, targets = self._corpus.held_out_batch(args.seq_len)
        held_out_loss = mean_loss(self._model, inputs.to(self._device), targets.to(self._device))
        newline = 0  # the first of the sorted vocabulary
        text = self._corpus.text(sample(self._model, newline, SAMPLE_LENGTH, args.seed)).strip()
        return {
            "steps": self._step,
            "continued_after_step": first_step,
            "final_loss": self._loss,
            "held_out_loss": held_out_loss,
            "chars_per_s": round(characters_per_s, 1),
            "ranks": self._placement.world_size,
            "hidden": args.hidden,
            "seq_len": args.seq_len,
            "batch": args.batch,
            "seed": args.seed,
        }, text + "\n"

"""The text as characters, and the batches drawn from it."""

from dataclasses import dataclass
from pathlib import Path
from typing import List, Tuple

import torch

from errors import CharlmError

HELD_OUT_FRACTION = 0.1


@dataclass(frozen=True)
class Corpus:
    vocabulary: str
    training: torch.Tensor
    held_out: torch.Tensor

    @staticmethod
    def load(path: str, seq_len: int) -> "Corpus":
        try:
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise CharlmError(f"cannot read {path} as text ({error}); name another with --text")
        vocabulary = "".join(sorted(set(text)))
        index_of = {character: index for index, character in enumerate(vocabulary)}
        characters = torch.tensor([index_of[character] for character in text])
        held_out_size = int(len(text) * HELD_OUT_FRACTION)
        if held_out_size <= seq_len:
            raise CharlmError(f"{path} has {len(text)} characters, too few for --seq-len "
                              f"{seq_len}; choose a longer text or shorter sequences")
        return Corpus(vocabulary, characters[:-held_out_size], characters[-held_out_size:])

    def batch(self, seed: int, step: int, rows: slice, batch: int,
              seq_len: int) -> Tuple[torch.Tensor, torch.Tensor]:
        """Inputs and targets of `rows` of the batch of a step.

        The batch is a function of seed and step alone, so neither an interruption nor another
        number of ranks changes what the model sees.
        """
        generator = torch.Generator().manual_seed(seed * 1_000_003 + step)
        starts = torch.randint(len(self.training) - seq_len, (batch,), generator=generator)[rows]
        windows = self.training[starts.unsqueeze(1) + torch.arange(seq_len + 1)]
        return windows[:, :-1], windows[:, 1:]

    def held_out_batch(self, seq_len: int) -> Tuple[torch.Tensor, torch.Tensor]:
        rows = (len(self.held_out) - 1) // seq_len
        inputs = self.held_out[:rows * seq_len].view(rows, seq_len)
        targets = self.held_out[1:rows * seq_len + 1].view(rows, seq_len)
        return inputs, targets

    def text(self, indices: List[int]) -> str:
        return "".join(self.vocabulary[index] for index in indices)

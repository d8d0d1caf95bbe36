"""A one-layer GRU that predicts the next character."""

from typing import List, Optional, Tuple

import torch
from torch import nn


class CharModel(nn.Module):
    def __init__(self, vocabulary_size: int, hidden: int):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary_size, hidden)
        self.gru = nn.GRU(hidden, hidden, batch_first=True)
        self.head = nn.Linear(hidden, vocabulary_size)

    def forward(self, characters: torch.Tensor,
                state: Optional[torch.Tensor] = None) -> Tuple[torch.Tensor, torch.Tensor]:
        hidden, state = self.gru(self.embedding(characters), state)
        return self.head(hidden), state

    def loss_sum(self, inputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        logits, _ = self(inputs)
        return nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten(),
                                           reduction="sum")


@torch.no_grad()
def mean_loss(model: CharModel, inputs: torch.Tensor, targets: torch.Tensor) -> float:
    return model.loss_sum(inputs, targets).item() / targets.numel()


@torch.no_grad()
def sample(model: CharModel, first: int, length: int, seed: int,
           temperature: float = 0.7) -> List[int]:
    device = model.head.weight.device
    generator = torch.Generator().manual_seed(seed)
    indices = [first]
    state = None
    while len(indices) < length:
        logits, state = model(torch.tensor([[indices[-1]]], device=device), state)
        probabilities = torch.softmax(logits[0, -1].cpu() / temperature, dim=0)
        indices.append(int(torch.multinomial(probabilities, 1, generator=generator)))
    return indices

"""Models that two cores can train: a small GPT on bytes, and a classifier of digits."""

import torch
from torch import nn
from torch.nn import functional

__all__ = ["GPT", "Block", "DigitReader", "spell"]


class Block(nn.Module):
    """One layer of a GPT: causal attention, then an MLP.

    x: [batch, length, width], as is the output.
    """

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.before_attention = nn.LayerNorm(width)
        self.queries_keys_values = nn.Linear(width, 3 * width, bias=False)
        self.after_attention = nn.Linear(width, width, bias=False)
        self.before_network = nn.LayerNorm(width)
        self.network = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return x plus the outputs of attention and network."""
        batch, length, width = x.shape
        split = self.queries_keys_values(self.before_attention(x)).view(
            batch, length, 3, self.heads, width // self.heads
        )
        q, k, v = split.permute(2, 0, 3, 1, 4)
        seen = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.after_attention(seen.transpose(1, 2).reshape(x.shape))
        return x + self.network(self.before_network(x))


class GPT(nn.Module):
    """A language model of bytes: a vocabulary of 256 tokens.

    length: the context length in bytes.
    Source: Radford et al., "Language models are unsupervised multitask learners"
        (2019).
    """

    def __init__(self, *, width=64, layers=2, heads=4, length=64):
        super().__init__()
        self.length = length
        self.token_embedding = nn.Embedding(256, width)
        self.position_embedding = nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.last_norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, 256, bias=False)
        self.apply(_start_small)

    def forward(self, text: torch.Tensor) -> torch.Tensor:
        """Return the logits of the next byte: [batch, length, 256].

        text: bytes as int64, [batch, length].
        """
        positions = torch.arange(text.shape[1], device=text.device)
        x = self.token_embedding(text) + self.position_embedding(positions)
        for block in self.blocks:
            x = block(x)
        return self.head(self.last_norm(x))

    def loss(self, text: torch.Tensor) -> torch.Tensor:
        """Return the mean cross-entropy of each byte after the first, in nats.

        text: [batch, up to length + 1].
        """
        logits = self(text[:, :-1])
        return functional.cross_entropy(logits.flatten(0, 1), text[:, 1:].flatten())


def _start_small(module):
    if isinstance(module, nn.Linear | nn.Embedding):
        nn.init.normal_(module.weight, std=0.02)
        if getattr(module, "bias", None) is not None:
            nn.init.zeros_(module.bias)


class DigitReader(nn.Module):
    """A classifier of scikit-learn's handwritten digits, 8 by 8 pixels each.

    pixels: [batch, 64], from 0 to 1; returns the logits of the digits, [batch, 10].
    """

    def __init__(self, width: int = 64):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(64, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(),
            nn.Linear(width, 10),
        )  # fmt: skip

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        """Return the logits, [batch, 10]."""
        return self.layers(pixels)

    def loss(self, pixels: torch.Tensor, digits: torch.Tensor) -> torch.Tensor:
        """Return the mean cross entropy, in nats."""
        return functional.cross_entropy(self(pixels), digits)


@torch.no_grad()
def spell(model: GPT, start: str, count: int, *, seed: int = 0) -> str:
    """Return `start` and `count` more bytes, sampled at a temperature of 0.8."""
    draw = torch.Generator().manual_seed(seed)
    device = model.head.weight.device
    text = torch.tensor([list(start.encode())], device=device)
    for _ in range(count):
        logits = model(text[:, -model.length :])[0, -1].float()
        chances = functional.softmax(logits / 0.8, dim=0)
        drawn = torch.multinomial(chances.cpu(), 1, generator=draw)
        text = torch.cat([text, drawn[None].to(device)], dim=1)
    return bytes(text[0].tolist()).decode(errors="replace")

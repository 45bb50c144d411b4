"""Vocabulary parallelism: embedding and cross-entropy sharded by token, and a GPT.

    rank 0   tokens   0 ..  85   its rows of the embedding, its columns of the logits
    rank 1   tokens  86 .. 170
    rank 2   tokens 171 .. 255

Each rank looks up the tokens that it has and zeros for the others; the sum over ranks
is the embedding. The cross-entropy needs three numbers of each token's logits: their
maximum, the sum of their exponentials, and the target's. Those are sent, the logits, as
many as the vocabulary has tokens, are not.

Source: Shoeybi et al., "Megatron-LM: training multi-billion parameter language models
using model parallelism" (2019), section 3.
"""

import copy

import torch
from torch import nn
from torch.nn import functional

from distlab.collectives import MAX, ring_all_reduce
from distlab.errors import InvalidArgument
from distlab.train.models import GPT
from distlab.train.tensor_parallel import (
    ColumnParallelLinear,
    ParallelBlock,
    own_range,
    part_of,
    reduce_from_ranks,
    scatter_sequence,
)

__all__ = ["ParallelGPT", "VocabParallelEmbedding", "vocab_parallel_cross_entropy"]


class VocabParallelEmbedding(nn.Module):
    """An embedding of which this rank has some rows; the others are zeros here.

    sequence: True to return this rank's shard of the sequence.
    Cost: one all-reduce of the output in forward, a reduce-scatter with sequence.
    """

    sharded = ("weight",)

    def __init__(self, comm, embedding: nn.Embedding, *, sequence=False):
        super().__init__()
        self.comm, self.sequence = comm, sequence
        self.vocabulary = embedding.num_embeddings
        if self.vocabulary < comm.world_size:
            raise InvalidArgument(
                f"a vocabulary of {self.vocabulary} tokens has none for some of "
                f"{comm.world_size} ranks."
            )
        start, end = own_range(comm, self.vocabulary)
        self.weight = part_of(embedding.weight, embedding.weight[start:end])

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return the row of each token.

        Raises: InvalidArgument for a token that is not in the vocabulary.
        """
        places, theirs = _own_places(self.comm, tokens, self.vocabulary)
        rows = functional.embedding(places, self.weight)
        found = rows.masked_fill(theirs.unsqueeze(-1), 0)
        leave = scatter_sequence if self.sequence else reduce_from_ranks
        return leave(self.comm, found)


def vocab_parallel_cross_entropy(
    comm, logits: torch.Tensor, targets: torch.Tensor, *, vocabulary: int
) -> torch.Tensor:
    """Return the mean cross-entropy from logits that are cut by columns.

    logits: [..., this rank's part of the vocabulary]; they are never gathered.
    Raises: InvalidArgument for logits that are not this rank's part, or such a target.
    Cost: three all-reduces of one number for each target, all of them in forward.
    """
    start, end = own_range(comm, vocabulary)
    if logits.shape != (*targets.shape, end - start):
        raise InvalidArgument(
            f"rank {comm.rank}: {[*targets.shape]} targets in a vocabulary of "
            f"{vocabulary} need logits of {[*targets.shape, end - start]} here, and "
            f"got {[*logits.shape]}."
        )
    places, theirs = _own_places(comm, targets, vocabulary)
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    highest = logits.detach().amax(-1)
    ring_all_reduce(comm, highest, op=MAX)
    logits = logits - highest.unsqueeze(-1)
    sums = reduce_from_ranks(comm, logits.exp().sum(-1))
    own = logits.gather(-1, places.unsqueeze(-1)).squeeze(-1).masked_fill(theirs, 0)
    return (sums.log() - reduce_from_ranks(comm, own)).mean()


def _own_places(comm, tokens, vocabulary):
    """Return each token's row on this rank, and a mask of tokens of other ranks.

    Such a token's row is 0: the caller replaces the result by zero.
    """
    wrong = tokens[(tokens < 0) | (tokens >= vocabulary)]
    if len(wrong):
        raise InvalidArgument(
            f"rank {comm.rank}: {wrong[0].item()} is no token of a vocabulary of "
            f"{vocabulary}."
        )
    start, end = own_range(comm, vocabulary)
    theirs = (tokens < start) | (tokens >= end)
    return (tokens - start).masked_fill(theirs, 0), theirs


class ParallelGPT(nn.Module):
    """A `GPT` whose blocks, token embedding and head are sharded over the ranks.

    comm: of the ranks that share the model. gpt: the whole, the same on all of them.
    After every backward with sequence=True, call `finalize_gradients`.
    """

    def __init__(self, comm, gpt: GPT, *, sequence=False):
        super().__init__()
        self.comm, self.sequence, self.length = comm, sequence, gpt.length
        self.token_embedding = VocabParallelEmbedding(
            comm, gpt.token_embedding, sequence=sequence
        )
        self.position_embedding = copy.deepcopy(gpt.position_embedding)
        self.blocks = nn.ModuleList(
            ParallelBlock(comm, block, sequence=sequence) for block in gpt.blocks
        )
        self.last_norm = copy.deepcopy(gpt.last_norm)
        self.head = ColumnParallelLinear(comm, gpt.head, sequence=sequence)
        if gpt.head.weight is gpt.token_embedding.weight:
            self.head.weight = self.token_embedding.weight

    def forward(self, text: torch.Tensor) -> torch.Tensor:
        """Return this rank's columns of the logits of the next byte."""
        length = text.shape[1]
        start, end = own_range(self.comm, length) if self.sequence else (0, length)
        x = self.token_embedding(text) + self.position_embedding(
            torch.arange(start, end, device=text.device)
        )
        for block in self.blocks:
            x = block(x, length)
        return self.head(self.last_norm(x), length)

    def loss(self, text: torch.Tensor) -> torch.Tensor:
        """Return the mean cross-entropy of each byte after the first, on every rank."""
        scores, targets = self(text[:, :-1]), text[:, 1:]
        vocabulary = self.token_embedding.vocabulary
        return vocab_parallel_cross_entropy(
            self.comm, scores, targets, vocabulary=vocabulary
        )

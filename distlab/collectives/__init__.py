"""The collectives, each algorithm one function of `comm` first.

A collective is a pattern of messages in which every rank takes part. Each function
here is written from `Comm`'s send and receive alone, works in place on a torch tensor
or numpy array, and has the cost that `distlab.cost` predicts; tests hold it to that.
"""

from distlab.collectives.all_reduce import (
    naive_all_reduce,
    ring_all_reduce,
    tree_all_reduce,
)

__all__ = ["naive_all_reduce", "ring_all_reduce", "tree_all_reduce"]

"""Predicted costs of collectives and training: rounds, bytes, seconds.

For every algorithm of `distlab.collectives` there is a function of the same name here:

    cost.ring_all_reduce(4, 10 * 4, itemsize=4)      ten float32 on four ranks

tensor_bytes: S, the bytes of the whole tensor, as everywhere in the course. Gather,
    all-gather, scatter and all-to-all, which take equal shards, have shard_bytes in its
    place, those of one of them: S is n times as much.
itemsize: bytes of one element; chunks are cut between elements, so that the counts are
    exact also where n does not divide S.

The model is the field's usual one: a message of b bytes takes alpha + b * beta seconds
(alpha: latency, beta: seconds per byte), a rank sends one message and receives one at
the same time, and adding up b bytes takes b * gamma. Rounds, messages and bytes are
exact and are tested against traces; seconds are as good as the model.

Source: Thakur, Rabenseifner and Gropp, "Optimization of collective communication
operations in MPICH" (2005).
"""

import pkgutil
from importlib import import_module

__all__ = []
for _module in pkgutil.iter_modules(__path__):
    _home = import_module(f"{__name__}.{_module.name}")
    __all__ += _home.__all__
    globals().update({name: getattr(_home, name) for name in _home.__all__})

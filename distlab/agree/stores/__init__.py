"""Replicated key-value stores, which differ in the replicas that a call must reach.

`PrimaryCopy` needs the primary, `Quorum` so many that any two quorums intersect, and
`LastWriterWins`, `VersionVectors` and `Causal` any one. Each file is one protocol.
"""

from distlab.agree.stores.any_replica import AnyReplica, LastWriterWins, VersionVectors
from distlab.agree.stores.causal import Causal
from distlab.agree.stores.primary_copy import PrimaryCopy
from distlab.agree.stores.quorum import Quorum
from distlab.agree.stores.store import Store

__all__ = [
    "AnyReplica",
    "Causal",
    "LastWriterWins",
    "PrimaryCopy",
    "Quorum",
    "Store",
    "VersionVectors",
]

"""Replicated key-value stores, which differ in the replicas that a call must reach.

`PrimaryCopy` needs the primary, `Quorum` so many that any two quorums intersect, and
`LastWriterWins`, `VersionVectors` and `Causal` any one; `DynamoStore` needs R or W of
the N that hold a key. Each file is one protocol.
"""

from distlab.agree.stores.any_replica import AnyReplica, LastWriterWins, VersionVectors
from distlab.agree.stores.causal import Causal
from distlab.agree.stores.dynamo import DynamoStore, LastWrite, preference_list
from distlab.agree.stores.primary_copy import PrimaryCopy
from distlab.agree.stores.quorum import Quorum
from distlab.agree.stores.store import Store

__all__ = [
    "AnyReplica",
    "Causal",
    "DynamoStore",
    "LastWrite",
    "LastWriterWins",
    "PrimaryCopy",
    "Quorum",
    "Store",
    "VersionVectors",
    "preference_list",
]

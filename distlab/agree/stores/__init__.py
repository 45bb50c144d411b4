"""One key-value store on several nodes, by three rules: which of them must be asked?

`PrimaryCopy` asks the one that decides, `Quorum` enough of them that any two questions
meet, `LastWriterWins`, `VersionVectors` and `Causal` nobody. Each file is one protocol.
"""

from distlab.agree.stores.any_replica import AnyReplica, LastWriterWins, VersionVectors
from distlab.agree.stores.causal import Causal
from distlab.agree.stores.primary_copy import PrimaryCopy
from distlab.agree.stores.quorum import Quorum
from distlab.agree.stores.store import Forgetful, Store

__all__ = [
    "AnyReplica",
    "Causal",
    "Forgetful",
    "LastWriterWins",
    "PrimaryCopy",
    "Quorum",
    "Store",
    "VersionVectors",
]

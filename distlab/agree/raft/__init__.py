"""Raft: consensus on a log, a key-value store on it, and monitors of its safety.

messages, log    data          raft         replication, snapshots, reads, members
election         leaders       key_value    the store    monitors    four properties
"""

from distlab.agree.raft.key_value import RaftStore
from distlab.agree.raft.monitors import (
    ElectionSafety,
    LeaderCompleteness,
    LogMatching,
    RaftView,
    StateMachineSafety,
    clients_linearizable,
    raft_monitors,
)
from distlab.agree.raft.raft import Raft

__all__ = [
    "ElectionSafety",
    "LeaderCompleteness",
    "LogMatching",
    "Raft",
    "RaftStore",
    "RaftView",
    "StateMachineSafety",
    "clients_linearizable",
    "raft_monitors",
]

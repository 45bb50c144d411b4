"""Raft: consensus on a log, a key-value store on it, and monitors of its safety.

messages, log    data          raft         replication, snapshots, reads, transfer
election         leaders       members      members added and removed
election_time    their time    key_value    the store    monitors    four properties
picture          logs that play
scenarios        runs up to where one rule decides
fenced_storage   refuses what a deposed leader writes
"""

from distlab.agree.raft.fenced_storage import FencedStorage
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
from distlab.agree.raft.picture import play_logs
from distlab.agree.raft.raft import Raft
from distlab.agree.raft.scenarios import (
    PROPERTIES,
    elect,
    replicate,
    search_scenarios,
    take,
    violated_property,
)

__all__ = [
    "PROPERTIES",
    "ElectionSafety",
    "FencedStorage",
    "LeaderCompleteness",
    "LogMatching",
    "Raft",
    "RaftStore",
    "RaftView",
    "StateMachineSafety",
    "clients_linearizable",
    "elect",
    "play_logs",
    "raft_monitors",
    "replicate",
    "search_scenarios",
    "take",
    "violated_property",
]

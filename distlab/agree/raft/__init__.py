"""Raft: consensus on a log, a key-value store on it, and monitors of its safety.

messages, log    data          raft         replication, snapshots, reads, members
election         leaders       key_value    the store    monitors    four properties
"""

from distlab.agree.raft.key_value import RaftStore
from distlab.agree.raft.raft import Raft

__all__ = ["Raft", "RaftStore"]

"""Nodes that exchange messages over a network that delays, drops and reorders them.

    node            a protocol: methods that take events and return effects
    node_host       calls a node's methods, and checks what they return
    virtual_clock   `simulate`: nodes and clients in this process
    schedules/      `search`, `fuzz`: what breaks it; `replay`, `step_through`
    cluster/        the same nodes as real processes behind a switch: `run`, `Cluster`

    Client ──▶ node ──▶ switch ──▶ node      delayed, dropped, duplicated, reordered

All of them return an `Outcome`: the history of the clients, and a trace.
"""

from distlab.network.client import Client
from distlab.network.cluster.cluster import Cluster, run
from distlab.network.delivery import Delivery
from distlab.network.node import (
    Append,
    CancelTimer,
    Effect,
    Node,
    Note,
    Refuse,
    Reply,
    Save,
    Send,
    SetTimer,
    Sync,
    Truncate,
    session_of,
)
from distlab.network.outcome import Outcome
from distlab.network.schedules.fuzzing import fuzz
from distlab.network.schedules.monitors import Monitor
from distlab.network.schedules.replay import replay
from distlab.network.schedules.schedule import EventSchedule
from distlab.network.schedules.search import search
from distlab.network.schedules.stepping import step_through
from distlab.network.virtual_clock import simulate

__all__ = [
    "Append",
    "CancelTimer",
    "Client",
    "Cluster",
    "Delivery",
    "Effect",
    "EventSchedule",
    "Monitor",
    "Node",
    "Note",
    "Outcome",
    "Refuse",
    "Reply",
    "Save",
    "Send",
    "SetTimer",
    "Sync",
    "Truncate",
    "fuzz",
    "replay",
    "run",
    "search",
    "session_of",
    "simulate",
    "step_through",
]

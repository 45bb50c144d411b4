"""Nodes that exchange messages, and everything that can happen to a message.

    Client ──▶ node ──▶ switch ──▶ node      late, lost, doubled, overtaken, cut off

`run` has real processes behind a switch process, `simulate` the same nodes on a virtual
clock, and `search` looks for the order of events that breaks them. `Cluster` is for
breaking them by hand.
"""

from distlab.network.client import Client
from distlab.network.cluster.cluster import Cluster, run
from distlab.network.delivery import Delivery
from distlab.network.node import (
    CancelTimer,
    Effect,
    Node,
    Note,
    Refuse,
    Reply,
    Save,
    Send,
    SetTimer,
)
from distlab.network.outcome import Outcome
from distlab.network.schedules.replay import replay
from distlab.network.schedules.schedule import Schedule
from distlab.network.schedules.search import search
from distlab.network.simulate import simulate

__all__ = [
    "CancelTimer",
    "Client",
    "Cluster",
    "Delivery",
    "Effect",
    "Node",
    "Note",
    "Outcome",
    "Refuse",
    "Reply",
    "Save",
    "Schedule",
    "Send",
    "SetTimer",
    "replay",
    "run",
    "search",
    "simulate",
]

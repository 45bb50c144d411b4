"""What every rank did, as data: events, counts made from them, whose shares moved."""

from distlab.trace.event import Event, Message, moves
from distlab.trace.shares import BASE, Payload, Shares, counts_in
from distlab.trace.trace import Trace

__all__ = [
    "BASE",
    "Event",
    "Message",
    "Payload",
    "Shares",
    "Trace",
    "counts_in",
    "moves",
]

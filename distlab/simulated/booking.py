"""Who is on which way of a fabric until when."""

import random

from distlab.errors import InvalidArgument

__all__ = ["Booking"]


class Booking:
    """The ports and wires of one run, and when each of them is free again.

    Messages are booked in the order in which both their sides are there.
    """

    def __init__(self, fabric, world_size: int):
        self._fabric, self._world_size = fabric, world_size
        self._draw = random.Random(fabric.seed) if fabric.seed is not None else None
        self._out, self._in = [0.0] * world_size, [0.0] * world_size
        self._wires = {}  # name -> when it is free
        self._ways = {}

    def book(self, src: int, dst: int, size: int, now: float) -> float:
        """Keep the way for a message as soon as it is free; return when it arrives."""
        latency, per_byte, shared = self._ways.get(
            src * self._world_size + dst
        ) or self._find(src, dst)
        if self._draw is not None:
            latency *= self._fabric.stretch(self._draw)
        start = now
        if self._out[src] > start:
            start = self._out[src]
        if self._in[dst] > start:
            start = self._in[dst]
        for wire, _ in shared:
            start = max(start, self._wires[wire])
        end = self._out[src] = self._in[dst] = start + (latency + size * per_byte)
        for wire, wire_per_byte in shared:
            self._wires[wire] = start + size * wire_per_byte
        return end

    def _find(self, src, dst):
        found = self._fabric.way(src, dst)
        if found is None:
            raise InvalidArgument(
                f"this fabric has no way from rank {src} to rank {dst}. Give it a "
                "link, or let the message go through a rank that both can reach."
            )
        slowest = max([found.seconds_per_byte, *(rate for _, rate in found.shared)])
        for wire, _ in found.shared:
            self._wires.setdefault(wire, 0.0)
        way = found.latency_s, slowest, found.shared
        self._ways[src * self._world_size + dst] = way
        return way

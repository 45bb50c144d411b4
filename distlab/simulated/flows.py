"""Flows: messages in flight through a fabric, and their shares of ports and wires.

    rank 0 ── port out ─▶ NIC out ══▶ NIC in ─▶ port in ── rank 3
                          wires: also of other ranks

A message takes its latency, then the time of its bytes. A port is busy with it for
both (in `Overlapped` for the bytes), a wire for the bytes. Messages that meet at a port
or a wire share it fairly, by progressive filling: the speeds of all grow together until
a port or wire is full, and the speeds of flows that do not pass it keep growing.

Source: Bertsekas and Gallager, Data Networks (1992), section 6.5.2, max-min fairness.
"""

import math
import random

from distlab.errors import InvalidArgument

__all__ = ["Flow", "Flows"]


class Flow:
    """One message that has met others.

    since: the time of the last update. latency_s, bytes_s: seconds left at full speed
    since then. ports, wires: (index, share of it that the message fills at full speed).
    end: its arrival if no other message begins; infinite while unknown.
    """

    def __init__(self, since, latency_s, bytes_s, way, about):
        self.since, self.latency_s, self.bytes_s = since, latency_s, bytes_s
        _, _, out, into, self.wires, overlaps = way
        self.ports = [(out, 1.0), (into, 1.0)]
        self.places = [out, into, *(wire for wire, _ in self.wires)]
        if overlaps:  # then ports are wires, too: free during the latency
            self.ports, self.wires = [], self.ports + self.wires
        self.end, self.about, self.group = math.inf, about, [self]


class Flows:
    """All messages of one run.

    changed: called with (about, end) for each message whose end has become known, or
    has changed; about: the owner's key of the message.

    Call in the order of time: `begin` for each message, and `settle` when all that
    begin at a time have begun.
    """

    def __init__(self, fabric, world_size: int, changed):
        self._fabric, self._changed = fabric, changed
        self._draw = random.Random(fabric.seed) if fabric.seed is not None else None
        self._places, self._met = {}, []
        self._ways = [{} for _ in range(world_size)]  # src -> dst -> way
        # port or wire -> the time until which it is busy, and its message: a Flow, or
        # the arguments of one while it is alone on its path, as nearly all are.
        self._until, self._last = [], []

    def begin(self, src: int, dst: int, size: int, now: float, about) -> float:
        """Begin a message of `size` bytes; return its end, infinite if unknown.

        It is unknown if the message meets others, until `settle`.
        """
        way = self._ways[src].get(dst) or self._find(src, dst)
        latency_s, per_byte, out, into, wires, _ = way
        if self._draw is not None:
            latency_s *= self._fabric.stretch(self._draw)
        bytes_s, until, last = size * per_byte, self._until, self._last
        message = now, latency_s, bytes_s, way, about
        if (
            until[out] > now
            or until[into] > now
            or (wires and any(until[wire] > now for wire, _ in wires))
        ):
            return self._meet(Flow(*message))
        end = now + (latency_s + bytes_s)
        until[out] = until[into] = end
        last[out] = last[into] = message
        for wire, _ in wires:
            until[wire], last[wire] = end, message
        return end

    def _meet(self, flow):
        for place in flow.places:
            if self._until[place] > flow.since:
                if isinstance(self._last[place], tuple):
                    self._lay(Flow(*self._last[place]), self._until[place])
                self._met.append(self._last[place])
        self._met.append(flow)
        self._lay(flow, math.inf)
        return flow.end

    def _lay(self, flow, end):
        """Mark a flow's ports and wires as busy with it until `end`."""
        flow.end = end
        for place in flow.places:
            self._until[place], self._last[place] = end, flow

    def settle(self, now: float) -> None:
        """Compute the speeds and ends of the messages that have met, from now on."""
        if not self._met:
            return
        groups = {id(flow.group): flow.group for flow in self._met}.values()
        self._met = []
        for group in groups:
            _go_on(group, now)
        flows = [flow for group in groups for flow in group if flow.end > now]
        for group in _meeting(flows):
            left = [[flow.latency_s, flow.bytes_s] for flow in group]
            ends = _move(group, left, now, math.inf)  # if no other begins
            for flow, end in zip(group, ends, strict=True):
                flow.group, changed = group, flow.end != end
                flow.end = end
                for place in flow.places:
                    self._until[place], self._last[place] = max(ends), flow
                if changed:
                    self._changed(flow.about, end)

    def _find(self, src, dst):
        found = self._fabric.way(src, dst)
        if found is None:
            raise InvalidArgument(
                f"this fabric has no way from rank {src} to rank {dst}. Give it a "
                "link, or let the message go through a rank that both can reach."
            )
        slowest = max([found.seconds_per_byte, *(rate for _, rate in found.shared)])
        ends = ("out", src), ("in", dst)
        out, into = [self._place((found.network, *end)) for end in ends]
        wires = [
            (self._place(name), rate / slowest if slowest else 0.0)
            for name, rate in found.shared
        ]
        way = found.latency_s, slowest, out, into, wires, found.overlaps
        self._ways[src][dst] = way
        return way

    def _place(self, name):
        if name not in self._places:
            self._places[name] = len(self._until)
            self._until.append(0.0)
            self._last.append(None)
        return self._places[name]


def _meeting(flows):
    """Return lists of flows that meet, directly or through others."""
    at, found = {}, []
    for flow in flows:
        for place in flow.places:
            at.setdefault(place, []).append(flow)
    left = dict.fromkeys(flows)
    while left:
        members = [left.popitem()[0]]
        for flow in members:
            for place in flow.places:
                for other in at.pop(place, ()):
                    if other in left:
                        del left[other]
                        members.append(other)
        found.append(members)
    return found


def _go_on(group, now):
    """Subtract the progress of a group's flows since their last update."""
    left = [[flow.latency_s, flow.bytes_s] for flow in group]
    _move(group, left, group[0].since, now)
    for flow, (flow.latency_s, flow.bytes_s) in zip(group, left, strict=True):
        flow.since = now


def _move(flows, left, now, until):
    """Advance flows until a time; update `left`, [latency, bytes]; return the ends."""
    ends = [math.inf] * len(flows)
    going = range(len(flows))
    while True:
        for k in going:
            if not any(left[k]):
                ends[k] = now
        going = [k for k in going if any(left[k])]
        if not going or now >= until:
            return ends
        phases = [left[k][0] == 0 for k in going]  # 0: latency, 1: bytes
        passed = [
            flows[k].ports + flows[k].wires if phase else flows[k].ports
            for k, phase in zip(going, phases, strict=True)
        ]
        speeds = _speeds(passed)
        needs = [
            left[k][phase] / speed
            for k, phase, speed in zip(going, phases, speeds, strict=True)
        ]
        first = min(needs)
        step = min(first, until - now)
        for k, phase, speed, need in zip(going, phases, speeds, needs, strict=True):
            over = need <= step * (1 + 1e-12)
            left[k][phase] = 0.0 if over else left[k][phase] - step * speed
        now = now + step if step == first else until


def _speeds(flows):
    """Return the share of its full speed that each flow gets, by progressive filling.

    flows: for each the (port or wire, share of it that the flow fills at full speed).
    """
    speeds, room, users = [1.0] * len(flows), {}, {}
    for k, places in enumerate(flows):
        for place, part in places:
            room[place] = 1.0
            users.setdefault(place, {})[k] = part
    while users:
        full = {place: room[place] / sum(users[place].values()) for place in users}
        place = min(full, key=full.get)
        if full[place] >= 1:
            break
        for k in users.pop(place):
            speeds[k] = full[place]
            for other, _ in flows[k]:
                if other in users:
                    room[other] -= users[other].pop(k) * speeds[k]
                    if not users[other]:
                        del users[other]
    return speeds

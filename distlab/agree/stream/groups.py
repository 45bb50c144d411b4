"""`ConsumerGroups`: who reads which partition, by generation, and how far.

    join ─▶ generation 1: a has 0, 1      join ─▶ generation 2: a has 0, b has 1
                                          commit of generation 1 ─▶ refused

Each partition has one consumer in a group. When a member comes, leaves or is silent,
the group is **rebalanced**: partitions are assigned anew, in a new generation. A
consumer of an earlier generation may go on for a while without knowing it; what it
commits is refused.
"""

from collections.abc import Hashable, Iterator, Sequence
from typing import Any

from distlab.network import Effect, Node, Refuse, Reply, Save, SetTimer
from distlab.trace import Call

__all__ = ["GROUP_CALLS", "ConsumerGroups"]

GROUP_CALLS = ("join", "leave", "heartbeat", "commit", "committed")


class ConsumerGroups(Node):
    """A node that keeps consumer groups; a rule is replaced by overriding its method.

    Calls: "join" and "leave" of group `key` by member `value`; "heartbeat", whose
    reply, as that of "join", is (generation, partitions); "commit" of (member,
    generation, {partition: offset}); "committed", whose reply is {partition: offset}.

    generation, members: of each group; durable, as is offsets[group]: the next offset
    to read of each partition. Invariant: a generation has one consumer a partition.
    """

    session_s = 0.5  # a member that is silent for so long is removed

    def __init__(self, me: int, peers: Sequence[int]):
        super().__init__(me, peers)
        self.generation: dict[str, int] = {}
        self.members: dict[str, list[str]] = {}
        self.offsets: dict[str, dict[int, int]] = {}

    def assign(self, members: Sequence[str], partitions: Sequence[int]) -> dict:
        """Return member -> its partitions, in turn."""
        count = len(members)
        return {m: list(partitions[at::count]) for at, m in enumerate(members)}

    def may_commit(self, group: str, generation: int, member: str) -> bool:
        """Return True for a member of the present generation."""
        present = generation == self.generation.get(group)
        return present and member in self.members[group]

    def on_group_call(self, request: int, call: Call) -> Iterator[Effect]:
        """Serve a call of a member."""
        group, members = call.key, self.members.get(call.key, [])
        member = call.value[0] if call.op == "commit" else call.value
        known = member in members
        if call.op == "committed":
            yield Reply(request, dict(self.offsets.get(group, {})))
        elif call.op == "join" and not known:
            yield from self.rebalance(group, [*members, member])
        elif call.op == "leave" and known:
            yield from self.rebalance(group, [m for m in members if m != member])
        elif call.op == "heartbeat" and not known:
            yield Refuse(request, f"{member!r} is no member of {group!r} now: join")
        elif call.op == "commit":
            yield from self.commit_offsets(request, group, *call.value)
            return
        if call.op in ("join", "heartbeat") and member in self.members.get(group, []):
            yield SetTimer(("session", group, member), self.session_s)
            mine = self.assign(self.members[group], self.group_partitions())[member]
            yield from self.when_durable(Reply(request, (self.generation[group], mine)))
        elif call.op == "leave":
            yield from self.when_durable(Reply(request))

    def commit_offsets(self, request, group, member, generation, offsets):
        """Commit offsets of a member, unless its generation is over."""
        if self.may_commit(group, generation, member):
            yield from self.save_offsets({group: offsets})
            yield from self.when_durable(Reply(request))
        else:
            now = self.generation.get(group, 0)
            why = f"generation {generation} of {group!r} is over, it is {now}: rejoin"
            yield Refuse(request, why)

    def rebalance(self, group: str, members: list[str]) -> Iterator[Effect]:
        """Begin a generation with these members."""
        self.generation[group] = self.generation.get(group, 0) + 1
        self.members[group] = members
        yield Save(
            "groups", {g: (self.generation[g], self.members[g]) for g in self.members}
        )

    def save_offsets(self, offsets: dict[str, dict]) -> Iterator[Effect]:
        """Write offsets of groups."""
        for group, new in offsets.items():
            self.offsets.setdefault(group, {}).update(new)
        yield Save("offsets", {g: dict(of) for g, of in self.offsets.items()})

    def load_groups(self, saved: dict[str, Any]) -> Iterator[Effect]:
        """Load the groups; each member gets the time of a session to be heard."""
        for group, (generation, members) in saved.get("groups", {}).items():
            self.generation[group], self.members[group] = generation, list(members)
            for member in members:
                yield SetTimer(("session", group, member), self.session_s)
        self.offsets = {g: dict(of) for g, of in saved.get("offsets", {}).items()}

    def on_timer(self, name: Hashable) -> Iterator[Effect]:
        """Remove a member that was silent for a session."""
        _, group, member = name
        rest = [m for m in self.members[group] if m != member]
        yield from self.rebalance(group, rest)

    def group_partitions(self) -> Sequence[int]:
        """Return the partitions that consumers share."""
        raise NotImplementedError

    def when_durable(self, *effects: Effect) -> Iterator[Effect]:
        """Sync, and carry out effects after that."""
        raise NotImplementedError

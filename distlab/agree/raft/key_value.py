"""`RaftStore`: a key-value store on Raft, which executes a repeated request once."""

from collections.abc import Iterator
from typing import Any

from distlab.agree.raft.members import ReconfigurableRaft
from distlab.agree.raft.messages import RaftEntry
from distlab.errors import InvalidArgument
from distlab.network import Effect, Refuse, session_of
from distlab.trace import Call

__all__ = ["RaftStore"]

_OF_A_NODE = "add_member", "remove_member", "transfer"


class RaftStore(ReconfigurableRaft):
    """A replicated key-value store; every member has all of it.

    Calls: "read", "write", "cas" of (old, new), "append" and "delete" of a key; and of
    the cluster "add_member" and "remove_member" of the node `value`, which return the
    members, and "transfer" of the leadership to it. A new member catches up before it
    votes; one that does not is refused.

    most_sessions: how many are kept; the one unused for the longest time in the log
        expires, so that it is the same one at all members. None for no limit.

    data: key -> value. sessions: client -> (number of its last call, its result), the
    last used one last. expired_calls: client -> number of its last call, whose result
    is gone. Invariant: all depend only on the entries applied.

    Limits: a call that is repeated after its session has expired, or after a later call
    of the client, is refused. Of an expired session a number remains: these clients do
    not register, so without it a repeated call looks like the first of a new client.

    Cost: of a call 2 (n - 1) messages, and one sync of the leader beside one of each
    follower; calls that arrive meanwhile share them. A read takes no entry, and with a
    lease no message.
    Source: the dissertation of Ongaro (2014), section 6.3 (sessions).
    """

    def __init__(
        self, me: int, peers: Any, *, most_sessions: int | None = None, **how: Any
    ):
        super().__init__(me, peers, **how)
        if most_sessions is not None and most_sessions < 1:
            raise InvalidArgument(
                f"most_sessions={most_sessions!r}: give a number of clients from 1."
            )
        self.most_sessions = most_sessions
        self.data: dict[Any, Any] = {}
        self.sessions: dict[int, tuple[int, Any]] = {}
        self.expired_calls: dict[int, int] = {}

    def serve(self, request: int, call: Call) -> Iterator[Effect]:
        """Serve a call as the leader."""
        op, members = call.op, {*self.members}
        if not _is_hashable((call.key, call.value)):
            yield Refuse(request, f"a key or value that can change: {call!r}")
        elif op in ("write", "cas", "append", "delete"):
            yield from self.propose(request, call)
        elif op == "read":
            yield from self.read(request, call)
        elif op in _OF_A_NODE and type(call.value) is not int:
            yield Refuse(
                request, f"{op} takes the number of a node, not {call.value!r}"
            )
        elif op == "add_member":
            yield from self.change(request, members | {call.value})
        elif op == "remove_member":
            yield from self.change(request, members - {call.value})
        elif op == "transfer":
            yield from self.transfer(request, call.value)
        else:
            yield Refuse(request, f"this store has no {op!r}; see RaftStore")

    def is_repeated(self, client: int, number: int) -> bool:
        """Return True for a call that was executed: the client has asked again."""
        return client in self.sessions and self.sessions[client][0] >= number

    def is_expired(self, client: int, number: int) -> bool:
        """Return True for a call that was executed, and whose session has expired."""
        return self.expired_calls.get(client, 0) >= number

    def apply(self, entry: RaftEntry) -> Any:
        """Execute a call once; return its result, also to a client that asks again."""
        if entry.command is None:
            return None
        client, number = session_of(entry.request)
        if not self.is_repeated(client, number) and not self.is_expired(client, number):
            try:
                result = self.execute(entry.command)
            except (TypeError, ValueError) as error:  # the same at all members
                result = f"not done: {error}"
            self.use_session(client, number, result)
        last, result = self.sessions.get(client, (0, None))
        if last == number:
            return result
        since = " has made a later call" if last else "'s session has expired"
        why = f": its call {number} was executed, and the result is not kept"
        return Refuse(entry.request, f"client {client}{since}{why}")

    def use_session(self, client: int, number: int, result: Any) -> None:
        """Keep the result of a client's call; let the oldest session expire."""
        self.sessions.pop(client, None)
        self.expired_calls.pop(client, None)
        self.sessions[client] = number, result
        if self.most_sessions and len(self.sessions) > self.most_sessions:
            oldest = next(iter(self.sessions))
            self.expired_calls[oldest] = self.sessions.pop(oldest)[0]

    def execute(self, call: Call) -> Any:
        """Execute a call on the data."""
        before = self.data.get(call.key)
        if call.op == "cas":
            old, new = call.value
            if before != old:
                return False
            self.data[call.key] = new
            return True
        if call.op == "delete":
            self.data.pop(call.key, None)
        elif call.op == "append" and before is not None:
            self.data[call.key] = before + call.value
        else:
            self.data[call.key] = call.value
        return None

    def value(self, call: Call) -> Any:
        """Return the value of a key."""
        return self.data.get(call.key)

    def state(self) -> Any:
        """Return a copy of data and sessions."""
        return dict(self.data), dict(self.sessions), dict(self.expired_calls)

    def restore(self, state: Any) -> None:
        """Continue with data and sessions of a snapshot."""
        self.data, self.sessions, self.expired_calls = map(dict, state)


def _is_hashable(value):
    try:
        hash(value)
    except TypeError:
        return False
    return True

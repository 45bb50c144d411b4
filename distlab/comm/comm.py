"""The calls of a learner's algorithm: messages, the barrier and marks."""

import pickle
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from distlab.comm.asynchronous import Started
from distlab.comm.buffers import Tensor, carried, filled, refuse_overlap
from distlab.comm.transfer import Transfers
from distlab.peers import (
    check_color,
    check_group_name,
    check_not_alone,
    check_peer,
    check_requests,
)

__all__ = ["Comm", "Request"]


class Request:
    """Messages in flight, from `isend`, `irecv` or `isendrecv`; `wait()` ends them."""

    def __init__(self, finish, is_over, sides=None):
        self._finish, self._is_over, self._sides = finish, is_over, sides

    def is_completed(self) -> bool:
        """Return True if `wait()` would return at once."""
        return self._finish is None or self._is_over()

    def wait(self) -> Tensor:
        """Wait until the message has been transferred; return its tensor or array."""
        if self._finish is not None:
            finish, self._finish = self._finish, None
            self._buffer = finish()
        return self._buffer


class Comm(Transfers):
    """One rank's interface to the others: messages, collectives and trace marks.

    rank: this rank's number, 0 to world_size - 1.
    world_size: the number of ranks.
    device: the device of tensors to send: CPU for gloo, this rank's GPU for NCCL.
    ranks: the members' ranks in the world; of a subgroup, see `split`, only some.

    Threads of a rank may use it at once. Ranks that have several are never reported as
    in a deadlock, since one thread may free another: they run until the time limit.
    """

    def __repr__(self):
        among = f", ranks={self.ranks}" if self.group else ""
        return (
            f"Comm(rank={self.rank}, world_size={self.world_size}, "
            f"device='{self.device}'{among})"
        )

    def send(self, tensor: Tensor, dst: int) -> None:
        """Send a tensor or array to rank `dst`; return when it has been received.

        Raises: InvalidArgument, MessageMismatch if the receiver's buffer does not fit.
        """
        self.next_step()
        outgoing = self._carried(tensor, dst, "dst")
        self._transfer("send", out=(outgoing, dst))

    def recv(self, tensor: Tensor, src: int) -> Tensor:
        """Fill a tensor or array with the next message from rank `src`; return it.

        Raises: InvalidArgument, MessageMismatch if the message does not fit the buffer.
        """
        self.next_step()
        buffer = self._carried(tensor, src, "src", into=True)
        self._transfer("recv", into=(buffer, src))
        return filled(tensor, buffer)

    def recv_any(self, tensor: Tensor) -> int:
        """Fill a tensor or array with the next message of any rank; return that rank.

        If several have sent, it receives from each in turn.

        Raises: InvalidArgument, MessageMismatch as `recv` does.
        """
        check_not_alone(self.world_size)
        self.next_step()
        buffer = carried(tensor, self.device, self.rank, True)
        self._receive_any(buffer)
        filled(tensor, buffer)
        return self._last_src

    def sendrecv(
        self, outgoing: Tensor, incoming: Tensor, *, dst: int, src: int
    ) -> Tensor:
        """Send `outgoing` to `dst` while filling `incoming` from `src`; return that.

        Both directions move at once, which is one step of a ring.

        Raises: InvalidArgument, MessageMismatch as `send` and `recv` do.
        """
        self.next_step()
        sent = self._carried(outgoing, dst, "dst")
        buffer = self._carried(incoming, src, "src", into=True)
        refuse_overlap(sent, buffer)
        self._transfer("sendrecv", out=(sent, dst), into=(buffer, src))
        return filled(incoming, buffer)

    def isend(self, tensor: Tensor, dst: int) -> Request:
        """Begin to send; the tensor must not change until the request's `wait()`."""
        self.next_step()
        outgoing = self._carried(tensor, dst, "dst")
        return Request(*self._begin("send", tensor, out=(outgoing, dst)))

    def irecv(self, tensor: Tensor, src: int) -> Request:
        """Begin to receive; the tensor is filled once `wait()` has returned it.

        NCCL runs the messages between two ranks one after another, in the order in
        which each rank begins them: one of the two has to begin with its send, or both
        begin with `isendrecv`.
        """
        self.next_step()
        buffer = self._carried(tensor, src, "src", into=True)
        return Request(*self._begin("recv", tensor, into=(buffer, src)))

    def isendrecv(
        self, outgoing: Tensor, incoming: Tensor, *, dst: int, src: int
    ) -> Request:
        """Begin a `sendrecv`; `wait()` returns `incoming` once both messages ended.

        Until then neither may change. Ranks around a ring can all begin with this.

        Raises: InvalidArgument, MessageMismatch as `sendrecv` does.
        Source: MPI 4.1, section 3.10, MPI_Isendrecv.
        """
        self.next_step()
        sent = self._carried(outgoing, dst, "dst")
        buffer = self._carried(incoming, src, "src", into=True)
        refuse_overlap(sent, buffer)
        sides = {"out": (sent, dst), "into": (buffer, src)}
        return Request(*self._begin("sendrecv", incoming, **sides))

    def wait_any(self, requests: Sequence[Request | Started]) -> int:
        """Wait until one of these requests has ended; return its index among them.

        Its `wait()` returns at once then. Of several that have ended it is the first.

        Raises: InvalidArgument if there is no request.
        """
        check_requests(requests)
        return self._wait_any(requests)

    def send_object(self, thing: object, dst: int) -> None:
        """Send any object that pickles; return when it has been received.

        In the trace this is one message of its pickled size.
        """
        self.next_step()
        check_peer(dst, "dst", self.rank, self.world_size)
        self._give_object(pickle.dumps(thing), dst)

    def recv_object(self, src: int) -> object:
        """Return the next object that rank `src` sends with `send_object`."""
        self.next_step()
        check_peer(src, "src", self.rank, self.world_size)
        return pickle.loads(self._take_object(src))

    def barrier(self) -> None:
        """Wait until every rank has called `barrier`."""
        self.next_step()
        self._meet()

    def split(
        self, color: int | None, key: int | None = None, *, name: str = ""
    ) -> "Comm | None":
        """Return a Comm among the ranks that give the same color; all must call this.

        It has ranks from 0 on, in the order of key, then of their ranks here, and its
        messages never meet those of another Comm. Color None: this rank is in none.
        name: the group's name in pictures and errors. `Mesh` splits ranks in a grid.

        Raises: InvalidArgument.
        Source: MPI 4.1, section 7.4.2, MPI_Comm_split.
        """
        return self.split_as(color, key, name, "split()")

    def split_as(
        self, color: int | None, key: int | None, name: str, words: str
    ) -> "Comm | None":
        """Split as `split` does, as a collective `words` on which ranks must agree."""
        check_color(color, key)
        check_group_name(name)
        self.next_step()
        return self._split(color, self.rank if key is None else key, name, words)

    def start(self, collective: Callable, *args, **options) -> Started:
        """Run `collective(comm, *args)` in the background, after those started before.

        The rank goes on; the request's `wait()` ends it. Until then its tensors may not
        be read or changed. Any other call of this Comm waits for it first.
        """
        return self.started.start(collective, self, *args, **options)

    @contextmanager
    def work(self, label: str, *, seconds: float = 0.0) -> Iterator[None]:
        """Record the time of the body in the trace, under a label such as "backward".

        seconds: the least that it takes: a real rank sleeps, a simulated one lets that
        pass on its clock.
        """
        start = time.monotonic()
        yield
        time.sleep(max(0.0, start + seconds - time.monotonic()))
        self.recorder.event("work", start, time.monotonic(), label=str(label))

    def mark(self, label: str) -> None:
        """Record in the trace a label for the rank's work from here on."""
        self.recorder.point("mark", str(label))

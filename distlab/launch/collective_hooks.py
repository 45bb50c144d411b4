"""Collective hooks: record a rank's use of torch.distributed as if it had used `Comm`.

    dist.all_reduce ──────────────┐
    FSDP2, DTensor ───────────────┼─▶ SeenGroup.allreduce ─▶ gloo or NCCL
    DDP's reducer, from C++ ──────┘        │
                                      notes: entered, waits, ended; origin, layers

Every process group that torch makes in a rank is a `SeenGroup`, a subclass of torch's
own in Python, through which all collectives pass, also those that C++ issues. So a
world can report the rank that skipped DDP's all-reduce, and a check can detect that a
learner's "own" all-reduce called a ready-made one. A message of a group is recorded as
one of the corresponding `Comm`, the world's or a subgroup's.
"""

import functools
import inspect
import json
import math
import os
import sys
import threading
import time
import traceback
from collections import Counter, deque
from collections.abc import Callable

import torch.distributed as dist
from torch.distributed import distributed_c10d

from distlab.calls.failure_location import described, whereabouts
from distlab.comm import Comm
from distlab.launch.call_origin import OBJECTS, CallOrigin, in_backward
from distlab.launch.seen_work import SeenWork
from distlab.patience import patience
from distlab.recorder import DESTROYED, THREADED, with_extra
from distlab.trace import group_name

__all__ = ["new_groups", "refuse", "watch"]

# The methods of a process group, each with the function of torch.distributed that it
# implements, and the position of the argument with the tensors that ranks agree on.
_METHODS = {
    "allreduce": ("all_reduce", 0),
    "allreduce_coalesced": ("all_reduce", 0),
    "broadcast": ("broadcast", 0),
    "reduce": ("reduce", 0),
    "allgather": ("all_gather", 0),  # its outputs: NCCL gathers uneven shapes, too
    "allgather_coalesced": ("all_gather", 1),
    "all_gather_single": ("all_gather_into_tensor", 1),
    "_allgather_base": ("all_gather_into_tensor", 1),
    "all_gather_single_coalesced": ("all_gather_into_tensor", 1),
    "allgather_into_tensor_coalesced": ("all_gather_into_tensor", 1),
    "gather": ("gather", 1),
    "scatter": ("scatter", 0),
    "reduce_scatter": ("reduce_scatter", 0),
    "reduce_scatter_single": ("reduce_scatter_tensor", 0),
    "_reduce_scatter_base": ("reduce_scatter_tensor", 0),
    "reduce_scatter_single_coalesced": ("reduce_scatter_tensor", 0),
    "reduce_scatter_tensor_coalesced": ("reduce_scatter_tensor", 0),
    "alltoall": ("all_to_all", None),  # pieces differ from rank to rank
    "all_to_all_single": ("all_to_all_single", None),
    "alltoall_base": ("all_to_all_single", None),
    "barrier": ("barrier", None),
    "monitored_barrier": ("monitored_barrier", None),
}
# C++ calls one name of each pair through the other: overriding both would never end.
_NEW = {
    "allgather_into_tensor_coalesced": "all_gather_single_coalesced",
    "reduce_scatter_tensor_coalesced": "reduce_scatter_single_coalesced",
    "alltoall_base": "all_to_all_single",
}
_SPLITS = {  # method -> what it sends to and expects from each member, as words
    name: lambda given: _pieces_of_one(*given[:4])
    for name in ("alltoall_base", "all_to_all_single")
}
_SPLITS["alltoall"] = lambda given: _in_words(*map(_sizes, given[1::-1]))
_FUNCTIONS = {function for function, _ in _METHODS.values()}
_FUNCTIONS |= {"all_gather_single", "reduce_scatter_single", *OBJECTS}
_SHOWN_SHAPES = 4
_LAST_S = 5.0  # for a collective that ends by itself, at the end of a call
_Plain = distributed_c10d.ProcessGroup
_OF_BOTH = ("_register_backend", "_set_default_backend", "_set_group_name")
_OF_BOTH += ("_set_group_desc",)


def watch(comm_of: Callable[[], Comm]) -> Callable[[bool], None]:
    """Record this process's use of torch.distributed in a Comm.

    comm_of: returns the present Comm of this process, or None.

    Returns: the function to call at the end of each call, `CollectiveHooks.leave`.
    """
    hooks = CollectiveHooks(comm_of)
    seen = _seen_group(hooks)
    make = distributed_c10d._new_process_group_helper

    @functools.wraps(make)
    def new_group(*args, **kwargs):
        distributed_c10d.ProcessGroup = seen
        try:
            made = make(*args, **kwargs)
        finally:
            distributed_c10d.ProcessGroup = _Plain
        if isinstance(made[0], seen):
            made[0].made_of([*args, *kwargs.values()][2])
        return made

    distributed_c10d._new_process_group_helper = new_group
    _replace("batch_isend_irecv", _batch)
    _replace("_new_group_with_tag", lambda call: _meet_for_group(comm_of, call))
    for name in ("send", "recv", "isend", "irecv"):
        _replace(name, lambda call, n=name: _message(comm_of, call, n))
    _replace("destroy_process_group", lambda call: _destroy(comm_of, call))
    return hooks.leave


def refuse(comm_of: Callable[[], Comm]) -> None:
    """Make torch.distributed's collectives raise: there is no process group here.

    Plain messages go through the `Comm` that `comm_of` returns. A collective is
    recorded before it raises.
    """
    for name in (*sorted(_FUNCTIONS), "init_process_group", "new_group"):
        if hasattr(distributed_c10d, name):
            _replace(name, lambda call, n=name: _refused(comm_of, n))
    for name in ("send", "recv", "isend", "irecv"):
        _replace(
            name, lambda call, n=name: _message(comm_of, call, n, lambda comm: True)
        )
    _replace("get_rank", lambda call: lambda group=None: comm_of().rank)
    _replace("get_world_size", lambda call: lambda group=None: comm_of().world_size)


def _in_group(comm):
    return comm and comm.connected and dist.is_initialized()


def _refused(comm_of, name):
    def refused(*args, **kwargs):
        comm_of().recorder.point("collective", name)
        raise RuntimeError(
            f"torch.distributed.{name} has no process group here: in a check every "
            "message goes through comm. Write it from comm.send, comm.recv, "
            "comm.sendrecv, comm.isend and comm.irecv."
        )

    return refused


def _replace(name, wrap):
    call = getattr(distributed_c10d, name)
    wrapped = functools.wraps(call)(wrap(call))
    for module in (distributed_c10d, dist):
        if hasattr(module, name):
            setattr(module, name, wrapped)


class CollectiveHooks:
    """The collective hooks of this process: its open collectives and backward pass.

    open: the collectives whose events are still to be written.
    """

    def __init__(self, comm_of: Callable[[], Comm]):
        self.comm_of = comm_of
        self.call_origin = CallOrigin(self.hold_at_end)
        self.groups, self.on_gpu, self.open = Counter(), deque(), set()
        os.register_at_fork(after_in_child=self.open.clear)
        self._thread = threading.get_ident()

    def enter(self, group, method: str, args: tuple, kwargs: dict) -> "SeenWork | None":
        """Record that a collective is entered; return it, or None if not recorded.

        Raises: Disagreement if another rank of the group entered a different one.
        """
        if group.pid != os.getpid():
            _report_fork(_METHODS[method][0])
            return None
        comm = self.comm_of()
        if not comm or group.key is None or not comm.recorder.knows(group.key):
            return None
        comm.next_step()
        here = threading.get_ident()
        if here != self._thread and here in threading._active and not in_backward():
            comm.recorder.raise_flag(THREADED)  # a thread of C++ comes from a hook
        name, where = _METHODS[method]
        given = [*args, *kwargs.values()]
        options = kwargs.get("opts") or next(iter(given[-1:]), None)
        tensors = [] if where is None else list(_tensors(given[where]))
        agreed = [_shapes(tensors), *_options(options, group.members)]
        own = self.call_origin.take(comm.recorder, group, tensors)
        if own.partition("'")[0] in OBJECTS:  # two of torch's collectives, in any order
            agreed.append("object")
        words = f"{name}({', '.join(filter(None, agreed))})"
        words += own and f"\n{own}"
        pieces = _SPLITS[method](given) if method in _SPLITS else ""
        if pieces or sys.exc_info()[0]:
            words = with_extra(words, _handled(), pieces)
        number = comm.recorder.enter_call(words, group.key)
        comm.check_agreement(number, words, group.key)
        whose = own.partition("\n")[0]
        function = whose.removesuffix("'s *")
        label = function if function in _FUNCTIONS else whose.replace("*", name) or name
        work = SeenWork(self, comm, group.key, number, words, label)
        work.size = sum(tensor.nbytes for tensor in tensors)
        work.later = getattr(options, "asyncOp", True) and method != "monitored_barrier"
        if method == "monitored_barrier":
            work.block()
        if tensors and tensors[0].is_cuda:
            work.block()  # NCCL's first collective waits for all ranks where it begins
            while self.on_gpu and self.on_gpu[0].real.is_completed():
                self.on_gpu.popleft().end()
            work.on_gpu = self.on_gpu
        return work

    def hold_at_end(self, works: list) -> Callable[[], None]:
        """Record that backward now waits for `works`; return a function that ends that.

        DDP waits in C++, for the first of its works that has not ended.
        """
        pending = [work for work in works if not work.ended]
        for work in pending[:1]:
            work.block()

        def over():
            for work in pending:
                work.settle()
            if pending:
                self.comm_of().recorder.running()

        return over

    def leave(self, returned: bool) -> None:
        """Write the remaining events at the end of this rank's call.

        Once the function has returned, a collective that all ranks have entered ends by
        itself, and is awaited for a few seconds. Any other is recorded as aborted.
        """
        deadline = time.monotonic() + patience(_LAST_S) * returned
        for work in list(self.open):
            while not work.settle():
                if not work.is_met() or time.monotonic() >= deadline:
                    work.end(math.nan)
                    break
                time.sleep(0.001)


def _seen_group(hooks):
    """Return a subclass of torch's ProcessGroup whose collectives are recorded."""

    class SeenGroup(_Plain):
        """A process group whose collectives `hooks` records.

        key: its name in the notes; None until its members are known. pid: its process.
        members: its ranks in the world. comm: the Comm that records its messages.
        plain: torch's own, over the same backend, which does the work. An override that
        calls its base method holds the GIL, and a thread of gloo that holds gloo's lock
        may wait for the GIL: a deadlock.
        """

        key, members, comm = None, (), None

        def __repr__(self):
            return f"<{_Plain.__module__}.ProcessGroup object at {id(self):#x}>"

        def __init__(self, store, rank, size):
            super().__init__(rank, size)  # required for a subclass's overrides
            self.pid = os.getpid()
            self.plain = _Plain(store, rank, size)

        def get_group_store(self):
            """Return the store of its rendezvous."""
            return self.plain.get_group_store()

        def made_of(self, ranks):
            """Record its members and its key; no `ranks` means the default group."""
            self.members, self.key = list(ranks) or list(range(self.size())), ""
            if ranks:
                among = frozenset(ranks)
                hooks.groups[among] += 1
                _, mesh, dimension = self.group_desc.partition("mesh_")
                name = dimension if mesh and dimension.isidentifier() else ""
                self.key = group_name(ranks, hooks.groups[among], name)
            else:
                hooks.groups.clear()  # a new world

    for name in _OF_BOTH:
        setattr(SeenGroup, name, _done_to_both(name))
    for name in _METHODS:
        if hasattr(SeenGroup, name) and not hasattr(SeenGroup, _NEW.get(name, "")):
            setattr(SeenGroup, name, _seen_method(hooks, name))
    return SeenGroup


def _done_to_both(name):
    method = getattr(_Plain, name)

    def done(self, *args):
        getattr(self.plain, name)(*args)
        return method(self, *args)

    return functools.wraps(method)(done)


def _seen_method(hooks, name):
    def seen(self, *args, **kwargs):
        work = hooks.enter(self, name, args, kwargs)
        real = getattr(self.plain, name)(*args, **kwargs)
        return real if work is None else work.begun(real)

    return functools.wraps(getattr(_Plain, name))(seen)


def _tensors(thing):
    if hasattr(thing, "dtype"):
        yield thing
    elif isinstance(thing, list | tuple):
        for each in thing:
            yield from _tensors(each)


def _shapes(tensors):
    """Return the distinct types and shapes in words, at most four of them."""
    words = list(dict.fromkeys(map(_shape, tensors)))
    more = [f"and {len(words) - _SHOWN_SHAPES} more"] if words[_SHOWN_SHAPES:] else []
    return ", ".join(words[:_SHOWN_SHAPES] + more)


def _shape(tensor):
    return f"{str(tensor.dtype).removeprefix('torch.')}{list(tensor.shape)}"


def _sizes(tensors):
    return [tensor.numel() for tensor in tensors]


def _pieces_of_one(output, input, output_splits, input_splits):
    """Return the pieces of an all-to-all of one tensor, in elements."""
    sides = []
    for tensor, rows in ((input, input_splits), (output, output_splits)):
        each = tensor.numel() // max(1, len(tensor)) if tensor.dim() else 1
        sides.append([count * each for count in rows])
    return _in_words(*sides) if all(sides) else ""


def _in_words(out, into):
    return "|".join(",".join(map(str, side)) for side in (out, into))


def _handled():
    """Return the exception that the caller is handling, as JSON, or ""."""
    error = sys.exc_info()[1]
    if error is None or isinstance(error, StopIteration | SystemExit):
        return ""
    facts = described(error)
    kept = facts["message"][:400].replace("\n", " "), facts["frames"][-6:]
    return json.dumps({"type": facts["type"], "message": kept[0], "frames": kept[1]})


def _options(options, members):
    """Yield further arguments that ranks agree on: the operation, the root's rank."""
    if hasattr(options, "reduceOp"):
        yield _operation(options.reduceOp)
    if hasattr(options, "rootRank"):
        yield str(members[options.rootRank])


def _operation(op):
    name = str(getattr(op, "op", op))
    return name.rpartition(".")[2]


def _meet_for_group(comm_of, call):
    """Wrap new_group, which every rank must call, though only members wait in it."""
    signature = inspect.signature(call)
    all_wait = getattr(distributed_c10d, "_is_barrier_after_init", lambda: 1)() == 1

    def met(*args, **kwargs):
        given = signature.bind(*args, **kwargs).arguments
        comm, ranks = comm_of(), given.get("ranks")
        if not comm or given.get("use_local_synchronization"):
            return call(*args, **kwargs)
        words = f"new_group({'' if ranks is None else list(ranks)})"
        among = "" if ranks is None or all_wait else group_name(ranks, "new")
        if among and comm.recorder.knows(new_groups(comm.world_size)):
            line = with_extra(words, "", "", whereabouts(_stack()))
            number = comm.recorder.enter_call(line, new_groups(comm.world_size))
            comm.check_agreement(number, words, new_groups(comm.world_size))
        if comm.rank not in (ranks or [comm.rank]) or not comm.recorder.knows(among):
            return call(*args, **kwargs)
        with comm.meeting("collective", words, "new_group", among):
            return call(*args, **kwargs)

    return met


def new_groups(world_size: int) -> str:
    """Return the name under which the ranks count their calls of new_group."""
    return group_name(range(world_size), "new")


def _stack():
    """Return this thread's frames, innermost first."""
    found = traceback.extract_stack(sys._getframe(1))
    return [(frame.filename, frame.lineno, frame.name) for frame in found[::-1]]


@functools.cache
def _report_fork(name):
    """Print, once, that a fork uses its parent's connections."""
    print(
        f"A fork of rank {os.environ.get('RANK')} called {name}() on a process group "
        f"of its parent{whereabouts(_stack())}\nIt shares the connections but has none "
        "of the threads that serve them: a group is of the process that made it.",
        file=sys.stderr,
        flush=True,
    )


def _message(comm_of, call, name, ready=_in_group):
    signature = inspect.signature(call)
    way = "dst" if name.endswith("send") else "src"

    def watched(*args, **kwargs):
        if not ready(comm_of()):
            return call(*args, **kwargs)
        try:
            given = signature.bind(*args, **kwargs).arguments
        except TypeError:
            return call(*args, **kwargs)  # torch reports what is wrong with them
        if getattr(given["tensor"], "is_cuda", False):
            return call(*args, **kwargs)
        comm = _comm_in(given.get("group"), comm_of())
        if comm is None or given.get("tag"):
            return call(*args, **kwargs)
        named = given.get(way)
        peer = comm.ranks.index(named) if named in comm.ranks else None
        peer = given.get(f"group_{way}", peer)
        if peer is None:
            return call(*args, **kwargs)
        done = getattr(comm, name)(given["tensor"], peer)
        return comm.ranks[peer] if name == "recv" else done

    return watched


def _batch(call):
    """Wrap batch_isend_irecv to coalesce messages, as torch does for its own class."""

    def batched(p2p_op_list):
        distributed_c10d._check_p2p_op_list(p2p_op_list)
        first = p2p_op_list[0]
        group, device = first.group or dist.group.WORLD, first.tensor.device
        if not group._get_backend(device).supports_coalescing:
            return call(p2p_op_list)
        group._start_coalescing(device)
        for each in p2p_op_list:
            each.op(each.tensor, each.peer, each.group, each.tag)
        return [group._end_coalescing(device)]

    return batched


def _comm_in(group, comm):
    """Return the Comm of a process group, or None if it isn't recorded."""
    if group in (None, dist.group.WORLD):
        return comm
    key = getattr(group, "key", None)
    if key is None or not comm.recorder.knows(key):
        return None
    if group.comm is None:
        group.comm = comm.among(group.members, key, group)
    return group.comm


def _destroy(comm_of, call):
    def watched(group=None):
        if group in (None, dist.group.WORLD) and comm_of():
            comm_of().recorder.raise_flag(DESTROYED)
        return call(group)

    return watched

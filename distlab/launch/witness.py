"""Note what a rank does through torch.distributed itself, as if it had used `Comm`.

Inside a rank, torch.distributed's functions are wrapped: a message counts as the
`Comm` message it is, and a collective is noted with its name, shape and type. That is
how a world can say which rank skipped `dist.all_reduce`, and how a check knows that a
learner's "own" all-reduce called a ready-made one. Calls on other process groups, and
calls that a wrapped call makes itself, pass through unseen.
"""

import functools
import inspect
from collections.abc import Callable

import torch.distributed as dist
from torch.distributed import distributed_c10d

from distlab.comm import Comm
from distlab.recorder import DESTROYED

__all__ = ["refuse", "watch"]

# What all ranks must agree on, by the names of torch's own parameters.
_COLLECTIVES = {
    "all_gather": ("tensor",),
    "all_gather_into_tensor": ("input_tensor",),
    "all_gather_object": (),
    "all_gather_single": ("input",),
    "all_reduce": ("tensor", "op"),
    "all_to_all": (),
    "all_to_all_single": (),
    "barrier": (),
    "broadcast": ("tensor", "src"),
    "broadcast_object_list": ("src",),
    "gather": ("tensor", "dst"),
    "gather_object": ("dst",),
    "monitored_barrier": (),
    "reduce": ("tensor", "dst", "op"),
    "reduce_scatter": ("output", "op"),
    "reduce_scatter_single": ("output", "op"),
    "reduce_scatter_tensor": ("output", "op"),
    "scatter": ("tensor", "src"),
    "scatter_object_list": ("src",),
}


def watch(comm_of: Callable[[], Comm]) -> None:
    """Wrap torch.distributed's functions here so that a Comm hears of every call.

    comm_of: returns the one that this process has at that moment.
    """
    guard = _Guard()
    for name, agreed in _COLLECTIVES.items():
        if hasattr(distributed_c10d, name):
            _replace(
                name,
                lambda call, n=name, a=agreed: _collective(comm_of, guard, call, n, a),
            )
    if comm_of().device.type == "cpu":
        for name in ("send", "recv", "isend", "irecv"):
            _replace(name, lambda call, n=name: _message(comm_of, guard, call, n))
    _replace("destroy_process_group", lambda call: _destroy(comm_of, call))


def refuse(comm_of: Callable[[], Comm]) -> None:
    """Have torch.distributed's functions say that there is no process group here.

    Plain messages go through the `Comm` that is returned at that moment. A collective
    is noted, and raises.
    """
    for name in (*_COLLECTIVES, "init_process_group", "new_group"):
        if hasattr(distributed_c10d, name):
            _replace(name, lambda call, n=name: _refused(comm_of, n))
    for name in ("send", "recv", "isend", "irecv"):
        _replace(
            name, lambda call, n=name: _message(comm_of, _Guard(), call, n, _always)
        )
    _replace("get_rank", lambda call: lambda group=None: comm_of().rank)
    _replace("get_world_size", lambda call: lambda group=None: comm_of().world_size)


def _always():
    return True


def _refused(comm_of, name):
    def refused(*args, **kwargs):
        comm_of().recorder.point("collective", name)
        raise RuntimeError(
            f"torch.distributed.{name} has no process group here: in a check every "
            "message goes through comm. Write it from comm.send, comm.recv, "
            "comm.sendrecv, comm.isend and comm.irecv."
        )

    return refused


class _Guard:
    """Whether this process is inside a wrapped call."""

    inside = False

    def __enter__(self):
        self.inside = True

    def __exit__(self, *_):
        self.inside = False


def _replace(name, wrap):
    call = getattr(distributed_c10d, name)
    wrapped = functools.wraps(call)(wrap(call))
    for module in (distributed_c10d, dist):
        if hasattr(module, name):
            setattr(module, name, wrapped)


def _collective(comm_of, guard, call, name, agreed):
    signature = inspect.signature(call)

    def watched(*args, **kwargs):
        if guard.inside or not dist.is_initialized():
            return call(*args, **kwargs)
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError:
            return call(*args, **kwargs)  # torch says what is wrong with them
        bound.apply_defaults()
        given = bound.arguments
        if given.get("group") not in (None, dist.group.WORLD):
            return call(*args, **kwargs)
        comm = comm_of()
        comm.next_step()
        words = f"{name}({', '.join(_words(given[a]) for a in agreed if a in given)})"
        if given.get("async_op"):
            with guard:
                return _begun(comm, words, name, call, args, kwargs)
        with guard, comm.meeting("collective", words, label=name):
            return call(*args, **kwargs)

    return watched


def _begun(comm, words, name, call, args, kwargs):
    """Start an asynchronous collective: noted, but nobody waits in it yet."""
    number = comm.recorder.enter_call(words)
    comm.check_agreement(number, words)
    comm.recorder.point("collective", name)
    return call(*args, **kwargs)


def _words(value):
    if hasattr(value, "dtype"):
        return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"
    return str(value).removeprefix("RedOpType.")


def _message(comm_of, guard, call, name, ready=dist.is_initialized):
    signature = inspect.signature(call)
    way = "dst" if name.endswith("send") else "src"

    def watched(*args, **kwargs):
        if guard.inside or not ready():
            return call(*args, **kwargs)
        try:
            given = signature.bind(*args, **kwargs).arguments
        except TypeError:
            return call(*args, **kwargs)
        peer = given.get(way, given.get(f"group_{way}"))
        plain = given.get("group") in (None, dist.group.WORLD) and not given.get("tag")
        if peer is None or not plain:
            return call(*args, **kwargs)
        done = getattr(comm_of(), name)(given["tensor"], peer)
        return peer if name == "recv" else done

    return watched


def _destroy(comm_of, call):
    def watched(group=None):
        if group in (None, dist.group.WORLD):
            comm_of().recorder.raise_flag(DESTROYED)
        return call(group)

    return watched

"""A CPU in the place of GPUs: a script written for CUDA and NCCL runs on gloo.

    torch.ones(3, device="cuda"), x.to(rank), x.cuda() ─▶ a mode, in each thread ─▶ CPU
    DDP(device_ids=), init_device_mesh("cuda"), nccl   ─▶ arguments changed      ─▶ gloo
    torch.cuda.Event, .max_memory_allocated(), ...     ─▶ stand-ins
    torch.compile, x.is_cuda                           ─▶ named, with their line

`install` is for a process that does nothing else: it is not undone.
"""

import contextlib
import functools
import inspect
import os
import sys
import threading
import time
import traceback
from types import SimpleNamespace

import torch
import torch.distributed as dist
from torch.distributed import device_mesh, distributed_c10d, fsdp
from torch.distributed.nn import functional
from torch.overrides import TorchFunctionMode

from distlab.calls.failure_location import learners_frames, whereabouts
from distlab.errors import InvalidArgument

__all__ = ["install"]

_NOTHING = (
    "synchronize empty_cache reset_peak_memory_stats init manual_seed ipc_collect"
)
_NOTHING += " manual_seed_all seed seed_all set_stream set_rng_state set_rng_state_all"
_NOTHING += (
    " reset_max_memory_allocated reset_accumulated_memory_stats current_blas_handle"
)
_NOTHING += (
    " set_per_process_memory_fraction reset_max_memory_cached set_sync_debug_mode"
)
_ZERO = "memory_allocated max_memory_allocated memory_reserved max_memory_reserved"
_ZERO += " memory_cached max_memory_cached utilization memory_usage initial_seed"
_TRUE = "is_available is_initialized is_bf16_supported is_tf32_supported"
_BYTES = 16 << 30
_DEVICE = SimpleNamespace(
    name="a CPU in the place of a GPU", total_memory=_BYTES, major=8, minor=0,
    multi_processor_count=1, gcnArchName="",
)  # fmt: skip
_FIXED = dict.fromkeys(("device_ids", "output_device", "device_id", "pg_options"))
_named = set()


class _OnCpu(TorchFunctionMode):
    """The mode in which tensors of "cuda" are made and kept on the CPU."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func is torch.device:  # a script may ask for its type
            return func(*args, **kwargs)
        if func in (torch.Tensor.cuda, torch.Tensor.pin_memory):
            return args[0]
        if "device" in kwargs:
            kwargs = kwargs | {"device": _device(kwargs["device"], number=True)}
        if func is torch.Tensor.to:
            return func(
                args[0], *(_device(each, number=True) for each in args[1:]), **kwargs
            )
        return func(*map(_device, args), **kwargs)


def _device(value, number=False):
    """Return the CPU for a device of CUDA; with `number`, an int is one, too."""
    if isinstance(value, torch.device):
        return torch.device("cpu") if value.type == "cuda" else value
    if isinstance(value, str) and value.partition(":")[0] == "cuda":
        return "cpu"
    if isinstance(value, str) and value.startswith("torch.cuda."):
        return value.replace(".cuda", "")  # x.type("torch.cuda.FloatTensor")
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return "cpu" if number and is_number else value


def _argument(name, value):
    """Return the value on a CPU of an argument of this name."""
    if name == "backend":
        return "gloo" if value is None or "nccl" in str(value) else value
    if name == "map_location":
        return value if callable(value) else "cpu"
    if name in ("args", "kwargs"):  # of Module.to
        many = [
            _device(each, number=True)
            for each in (value if name == "args" else value.values())
        ]
        return tuple(many) if name == "args" else dict(zip(value, many, strict=True))
    return _device(value)


def _change_arguments(name, *owners, **fixed):
    """Replace a function in all its owners by one that changes its arguments."""
    call, fixed = getattr(owners[0], name), _FIXED | fixed
    signature = inspect.signature(call)

    @functools.wraps(call)
    def changed(*args, **kwargs):
        given = signature.bind(*args, **kwargs)
        given.apply_defaults()
        for each, value in given.arguments.items():
            value = fixed[each] if each in fixed else _argument(each, value)
            given.arguments[each] = value
        return call(*given.args, **given.kwargs)

    for owner in owners:
        if hasattr(owner, name):
            setattr(owner, name, changed)


class _Moment:
    """A point in time, as torch.cuda.Event; a stream, in which all is done at once."""

    def __init__(self, *args, **kwargs):
        self._at = None

    def record(self, stream=None):
        self._at = time.perf_counter()

    def elapsed_time(self, end):
        return (end._at - self._at) * 1e3

    def query(self):
        return True

    def record_event(self, event=None):
        event = event or _Moment()
        event.record()
        return event

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return lambda *args: None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


class _Generator(torch.Generator):
    """A generator of the CPU, whatever its device should be."""

    def __new__(cls, device="cpu"):
        return super().__new__(cls, "cpu")


def install(world_size: int) -> None:
    """Let the CPU stand in for `world_size` GPUs, or two for a script of one rank."""
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    _stand_in(max(2, world_size))
    _change_arguments("init_process_group", distributed_c10d, dist, device_mesh)
    _change_arguments("new_group", distributed_c10d, dist, device_mesh)
    _change_arguments("barrier", distributed_c10d, dist)
    _change_arguments("init_device_mesh", device_mesh, dist)
    _change_arguments("set_default_device", torch)
    _change_arguments("load", torch.serialization, torch)
    _change_arguments("to", torch.nn.Module)
    for kind in (
        torch.nn.parallel.DistributedDataParallel, device_mesh.DeviceMesh,
        torch.amp.autocast, torch.amp.GradScaler,
    ):  # fmt: skip
        _change_arguments("__init__", kind)
    here = {"device_id": torch.device("cpu")}  # without it FSDP looks for a GPU
    _change_arguments("__init__", fsdp.FullyShardedDataParallel, **here)
    torch.nn.SyncBatchNorm.forward = _normalize_over_ranks
    ddp = torch.nn.parallel.DistributedDataParallel
    ddp._passing_sync_batchnorm_handle = lambda self, module: None  # refuses a CPU
    for name in ("all_reduce", "reduce", "reduce_scatter", "reduce_scatter_tensor"):
        _average(name)
    dist.is_nccl_available = distributed_c10d.is_nccl_available = lambda: True
    if not hasattr(dist, "ProcessGroupNCCL"):
        dist.ProcessGroupNCCL = SimpleNamespace(Options=lambda **how: SimpleNamespace())
    torch.Generator = _Generator
    torch.Tensor.is_cuda = property(_is_cuda)
    torch.Tensor.record_stream = lambda self, stream: None
    torch.compile = _uncompiled
    torch.nn.Module.compile = lambda self, *args, **kwargs: _uncompiled(self) and None
    start = threading.Thread.start

    @functools.wraps(start)
    def start_on_cpu(thread):
        thread.run = functools.partial(_run_on_cpu, thread.run)
        start(thread)

    threading.Thread.start = start_on_cpu
    _OnCpu().__enter__()


def _stand_in(count):
    """Let torch.cuda and torch.accelerator answer as with `count` GPUs."""
    here = [0]
    found = dict.fromkeys(_NOTHING.split()) | dict.fromkeys(_ZERO.split(), 0)
    found |= dict.fromkeys(_TRUE.split(), True) | {"device_count": count}
    found |= {"get_device_name": _DEVICE.name, "get_device_properties": _DEVICE}
    found |= {"get_device_capability": (8, 0), "mem_get_info": (_BYTES, _BYTES)}
    found |= {"memory_stats": {}, "memory_summary": "", "get_arch_list": []}
    found |= {"is_current_stream_capturing": False, "can_device_access_peer": True}
    found["current_accelerator"] = torch.device("cuda")
    calls = {
        name: lambda *args, _found=value, **kwargs: _found
        for name, value in found.items()
    }
    calls["current_device"] = calls["current_device_index"] = lambda: here[0]

    def set_device(device):
        index = device if isinstance(device, int) else torch.device(device).index
        here[0] = index or 0

    calls["set_device"] = calls["set_device_index"] = set_device
    calls["get_rng_state"] = lambda *args: torch.get_rng_state()
    calls["get_rng_state_all"] = lambda: [torch.get_rng_state()] * count
    calls["stream"] = calls["device"] = lambda *args: contextlib.nullcontext()
    calls["current_stream"] = calls["default_stream"] = _Moment
    calls |= {"Stream": _Moment, "Event": _Moment, "_lazy_init": _unknown}
    cuda = torch.cuda
    for owner in (cuda, cuda.memory, cuda.random, cuda.streams, torch.accelerator):
        for name, call in calls.items():
            if hasattr(owner, name):
                setattr(owner, name, call)
    torch.Stream, torch.Event = _Moment, _Moment
    cuda.nccl.version = lambda: (2, 27, 5)
    cuda.nvtx.range_push = cuda.nvtx.range_pop = cuda.nvtx.mark = calls["synchronize"]
    cuda.nvtx.range = lambda *args, **kwargs: contextlib.nullcontext()
    for name in [name for name in dir(cuda) if name.endswith("Tensor")]:
        setattr(cuda, name, getattr(torch, name))


def _average(name):
    """Let a collective average, which gloo cannot: it sums, waits and divides."""
    call = getattr(distributed_c10d, name)
    signature = inspect.signature(call)

    @functools.wraps(call)
    def averaged(*args, **kwargs):
        given = signature.bind(*args, **kwargs).arguments
        if given.get("op") != dist.ReduceOp.AVG:
            return call(*args, **kwargs)
        work = call(**given | {"op": dist.ReduceOp.SUM})
        if work is not None:
            work.wait()
        next(iter(given.values())).div_(dist.get_world_size(given.get("group")))
        return work

    for owner in (distributed_c10d, dist):
        setattr(owner, name, averaged)


def _normalize_over_ranks(norm, x):
    """Do as SyncBatchNorm, with one all-reduce of sums over gloo in each direction."""
    group = norm.process_group or dist.group.WORLD
    if not norm.training or not dist.is_initialized() or group.size() == 1:
        return torch.nn.modules.batchnorm._BatchNorm.forward(norm, x)
    dims, shape = [0, *range(2, x.dim())], [1, -1, *[1] * (x.dim() - 2)]
    wide = x.double()
    count = wide.new_tensor([x.numel() // x.shape[1]])
    sums = torch.cat([wide.sum(dims), wide.square().sum(dims), count])
    sums = functional.all_reduce(sums, group=group)
    mean, square = (sums[:-1] / sums[-1]).chunk(2)
    variance = square - mean.square()
    if norm.track_running_stats:
        norm.num_batches_tracked += 1
        part = norm.momentum or 1 / norm.num_batches_tracked.item()
        unbiased = variance * sums[-1] / (sums[-1] - 1)
        for kept, new in (norm.running_mean, mean), (norm.running_var, unbiased):
            kept.lerp_(new.detach().to(kept.dtype), part)
    out = (wide - mean.view(shape)) * (variance + norm.eps).rsqrt().view(shape)
    if norm.affine:
        out = out * norm.weight.view(shape) + norm.bias.view(shape)
    return out.to(x.dtype)


def _run_on_cpu(run):
    with _OnCpu():  # modes are per thread
        run()


@functools.wraps(torch.compile)
def _uncompiled(model=None, **how):
    _name("torch.compile is left out", "it runs as written")
    return (lambda function: function) if model is None else model


def _is_cuda(tensor):
    frame = sys._getframe(1)
    if learners_frames([(frame.f_code.co_filename, frame.f_lineno, "")]):
        _name("x.is_cuda is False", "as x is on the CPU")
    return False


def _unknown():
    """Refuse what has no stand-in; torch.cuda's functions call this first."""
    name = sys._getframe(1).f_code.co_name
    raise InvalidArgument(
        f"--cpu has nothing in the place of torch.cuda's {name}{_line()}. "
        "Put it behind a test of torch.version.cuda, which is None here."
    )


def _line():
    stack = traceback.extract_stack()[::-1]
    return whereabouts((each.filename, each.lineno, each.name) for each in stack)


def _name(what, advice):
    """Print, once per line and node, what is not as on a GPU."""
    line = _line()
    if (what, line) not in _named and os.environ.get("LOCAL_RANK") == "0" and line:
        _named.add((what, line))
        print(f"--cpu: {what}, {advice}{line}", file=sys.stderr, flush=True)

"""The hook: error feedback around a compressor, for our data parallel and for DDP.

    gradient ─▶ + ─▶ compress ─▶ average over ranks ─▶ the optimizer's gradient
                ▲        │
                └ error ◀┘   the unsent rest is added to the next step's gradient

    hook = Compressed(TopK(0.01))
    model = OverlappedDataParallel(comm, model, hook=hook)     # ours, or
    ddp.register_comm_hook(comm, hook)                         # PyTorch's

Source: Seide et al., "1-bit stochastic gradient descent and its application to
data-parallel distributed training of speech DNNs" (2014); Stich, Cordonnier and Jaggi,
"Sparsified SGD with memory" (2018).
"""

import torch
from torch import nn

from distlab.collectives import AVERAGE, ring_all_reduce
from distlab.errors import InvalidArgument
from distlab.train.compression.compressor import Compressor, room_for_a_sum

__all__ = ["Compressed"]


class Compressed:
    """A communication hook that averages a bucket's gradients as codes.

    error_feedback: True to add the unsent rest to the next gradient.
    warmup: number of first steps without compression, while gradients change much.
    module: for parameters' names in messages; our data parallel has its own.

    Errors are kept for each parameter, in float32 or more, and so survive DDP's
    rebuilding of its buckets after the first step.

    Raises: InvalidArgument on the rank and for the parameter whose gradient is NaN or
        infinite, since the error would keep it for ever; for gradients that are not of
        a floating-point type; and for error feedback around a compressor that does not
        contract.
    """

    def __init__(
        self,
        compressor: Compressor,
        *,
        error_feedback: bool = True,
        warmup: int = 0,
        module: nn.Module | None = None,
    ):
        if error_feedback and not compressor.contracts:
            raise InvalidArgument(
                f"{type(compressor).__name__} as it is may lose more than there was, "
                "and an error that is fed back would grow without end: pass "
                "error_feedback=False, or take a compressor that contracts, such as "
                "TopK, Sign, PowerSGD, or QSGD with more bits or smaller blocks."
            )
        self.compressor, self.error_feedback = compressor, error_feedback
        self.warmup = warmup
        named = module.named_parameters() if module else []
        self.names = {parameter: name for name, parameter in named}
        self.__name__ = self.__qualname__ = type(self).__name__  # DDP reports a name
        self.steps = {}  # of each parameter
        self._errors = {}

    def __call__(self, comm, bucket) -> torch.futures.Future[torch.Tensor]:
        """Average a bucket's gradients in place; return a future that holds them.

        bucket: a `Bucket`, or PyTorch's GradBucket.
        """
        flat, parameters = bucket.buffer(), bucket.parameters()
        check_gradients(comm, flat, parameters, getattr(bucket, "names", self.names))
        step = self.steps.get(parameters[0], 0)
        self.steps |= dict.fromkeys(parameters, step + 1)
        if len(flat):
            if step < self.warmup:
                ring_all_reduce(comm, flat, op=AVERAGE)
            else:
                flat.copy_(self.average(comm, flat, parameters, step))
        future = torch.futures.Future()
        future.set_result(flat)
        return future

    def average(self, comm, flat, parameters, step) -> torch.Tensor:
        """Return the mean over ranks of decompressed gradients plus errors."""
        if not self.error_feedback:
            return self.compressor.average(comm, flat, parameters)[0]
        error = self.kept(self._errors, flat, parameters)
        error += flat
        mean, sent = self.compressor.average(comm, error, parameters)
        error -= sent
        return mean

    def error_of(self, parameter) -> torch.Tensor:
        """Return the unsent rest of a parameter's gradients, flat."""
        return _slice_of(self._errors, parameter)

    def kept(self, store, flat, parameters) -> torch.Tensor:
        """Return a bucket's stored tensor, zeros at first, to be changed in place.

        A bucket with other parameters than before takes over their elements, and keeps
        those of the other parameters in the store.
        """
        key = tuple(parameters)
        if key not in store:
            like = room_for_a_sum(flat)  # small gradients add up before they are sent
            whole = torch.cat([_slice_of(store, p).to(like) for p in parameters])
            for old in [old for old in store if set(old) & set(key)]:
                left = [(p, _slice_of(store, p)) for p in set(old) - set(key)]
                del store[old]
                store |= {(parameter,): piece for parameter, piece in left}
            store[key] = whole
        return store[key]


def check_gradients(comm, flat, parameters, names) -> None:
    """Check that gradients are finite and of a floating-point type.

    Raises: InvalidArgument, naming rank and parameter.
    """
    if not flat.is_floating_point():
        raise InvalidArgument(
            f"rank {comm.rank}: only floating-point gradients can be compressed, and "
            f"these are {flat.dtype}."
        )
    if not bool(flat.isfinite().all()):
        counts = [parameter.numel() for parameter in parameters]
        pieces = enumerate(flat.split(counts))
        place, piece = next((k, e) for k, e in pieces if not e.isfinite().all())
        one, shape = parameters[place], list(parameters[place].shape)
        name = names.get(one, f"parameter {place} of this bucket, of shape {shape},")
        what = "NaN" if bool(piece.isnan().any()) else "infinite"
        raise InvalidArgument(
            f"rank {comm.rank}: the gradient of {name} has elements that are {what}. "
            "Skip the step, or clip and lower the learning rate before compressing."
        )


def _slice_of(store, parameter):
    for key, flat in store.items():
        pieces = flat.split([each.numel() for each in key])
        found = [piece for p, piece in zip(key, pieces, strict=True) if p is parameter]
        if found:
            return found[0]
    return parameter.detach().new_zeros(parameter.numel())

"""Memory and traffic per rank of ZeRO's stages, from the number of parameters.

    stage   parameters   gradients   state     bytes sent, in times the parameters
      0         1            1         1       2 (n-1)/n
      1         1            1        1/n      2 (n-1)/n
      2         1           1/n       1/n      2 (n-1)/n
      3        1/n          1/n       1/n      3 (n-1)/n

Source: Rajbhandari et al., "ZeRO: memory optimizations toward training trillion
parameter models" (2020), sections 5 and 7.
"""

from dataclasses import astuple, dataclass

from distlab.errors import InvalidArgument
from distlab.units import readable_bytes

__all__ = ["ModelStates", "offload_memory", "zero_memory", "zero_traffic_bytes"]

_KINDS = ("parameters", "gradients", "state")


@dataclass(frozen=True)
class ModelStates:
    """The bytes that one rank holds for a model, without its activations."""

    parameter_bytes: float
    gradient_bytes: float
    state_bytes: float

    @property
    def total_bytes(self) -> float:
        """The bytes of all three."""
        return self.parameter_bytes + self.gradient_bytes + self.state_bytes

    def __str__(self):
        return (
            f"parameters {readable_bytes(self.parameter_bytes)}, "
            f"gradients {readable_bytes(self.gradient_bytes)}, "
            f"optimizer state {readable_bytes(self.state_bytes)}"
        )


def zero_memory(
    parameters: float,
    world_size: int,
    stage: int,
    *,
    parameter_bytes: float = 2,
    gradient_bytes: float = 2,
    state_bytes: float = 12,
) -> ModelStates:
    """Return a rank's bytes of a model's parameters, gradients and optimizer state.

    parameters: the model's number of parameters. The bytes are those for each of them;
        the paper's are 2 + 2 + 12, for 16-bit training with Adam: 4 bytes for each of
        a float32 copy and two moments. Adam in float32 takes 4 + 4 + 8.

    Raises: InvalidArgument for a stage other than 0 to 3, or no rank at all.
    """
    _check(world_size, stage)
    return ModelStates(
        parameters * parameter_bytes / (world_size if stage >= 3 else 1),
        parameters * gradient_bytes / (world_size if stage >= 2 else 1),
        parameters * state_bytes / (world_size if stage >= 1 else 1),
    )


def offload_memory(
    parameters: float,
    world_size: int,
    stage: int,
    *,
    offloaded: tuple[str, ...] = ("gradients", "state"),
    **bytes_each: float,
) -> tuple[ModelStates, ModelStates]:
    """Return a rank's bytes on the GPU and in the host's memory, with CPU offload.

    offloaded: which of "parameters", "gradients" and "state" are on the host.
        ZeRO-Offload's are the last two: 2 bytes of 16 stay on the GPU.
    bytes_each: `parameter_bytes` and so on, of `zero_memory`.

    Raises: InvalidArgument.
    Source: Ren et al., "ZeRO-Offload: democratizing billion-scale model training"
        (2021), section 3.
    """
    states = zero_memory(parameters, world_size, stage, **bytes_each)
    sizes = dict(zip(_KINDS, astuple(states), strict=True))
    unknown = set(offloaded) - sizes.keys()
    if unknown or isinstance(offloaded, str):
        raise InvalidArgument(
            f"offloaded is a tuple of some of {', '.join(_KINDS)}, and got "
            f"{offloaded!r}."
        )
    host = ModelStates(*(n * (kind in offloaded) for kind, n in sizes.items()))
    gpu = ModelStates(*(n * (kind not in offloaded) for kind, n in sizes.items()))
    return gpu, host


def zero_traffic_bytes(parameter_bytes: float, world_size: int, stage: int) -> float:
    """Return the bytes that a rank sends in a step of one forward and one backward.

    parameter_bytes: of all parameters together; gradients are taken to be as long.
    With k backwards in a step, stages 2 and 3 reduce gradients k times, and stage 3
    gathers parameters 2k times.

    Raises: InvalidArgument for a stage other than 0 to 3, or no rank at all.
    """
    _check(world_size, stage)
    times = 3 if stage == 3 else 2
    return times * parameter_bytes * (world_size - 1) / world_size


def _check(world_size, stage):
    if stage not in (0, 1, 2, 3):
        raise InvalidArgument(f"ZeRO has stages 0 to 3, and got {stage!r}.")
    if not world_size >= 1:
        raise InvalidArgument(f"there is one rank at least, and got {world_size!r}.")

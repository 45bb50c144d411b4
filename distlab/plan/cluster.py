"""Clusters of GPUs: memory, rates, links, power, price and failures."""

from dataclasses import KW_ONLY, dataclass

from distlab.errors import InvalidArgument
from distlab.links import LINKS, Link
from distlab.units import GB, TB

__all__ = ["GPUS", "Gpu", "GpuCluster"]


@dataclass(frozen=True)
class Gpu:
    """A GPU's data sheet: memory, peak of dense 16-bit products, and power.

    inside: its link to the GPUs of its node, one direction.
    """

    name: str
    memory_bytes: float
    peak_flops: float
    memory_bytes_per_s: float
    power_w: float
    inside: Link


def _gpu(name, memory_gb, peak_tflops, tb_per_s, power_w, inside):
    rate = tb_per_s * TB
    link = LINKS[inside]
    return Gpu(name, memory_gb * GB, peak_tflops * 1e12, rate, power_w, link)


GPUS = {  # NVIDIA's data sheets; dense BF16 (V100: FP16); their GB as 10**9 bytes
    each.name: each
    for each in (
        _gpu("V100 32GB", 32, 125, 0.9, 300, "NVLink 2"),
        _gpu("A100 40GB", 40, 312, 1.555, 400, "NVLink 3"),
        _gpu("A100 80GB", 80, 312, 2.039, 400, "NVLink 3"),
        _gpu("H100 80GB", 80, 989.4, 3.35, 700, "NVLink 4"),
        _gpu("H200 141GB", 141, 989.4, 4.8, 700, "NVLink 4"),
        _gpu("B200 180GB", 180, 2250, 7.7, 1000, "NVLink 5"),
    )
}


@dataclass(frozen=True)
class GpuCluster:
    """`gpus` GPUs in nodes of `per_node`, each with a NIC on a rail of its own.

    outside: a NIC's link. nics: of a node; fewer than GPUs share them.
    oversubscription: ports down for each wire up, of leaf switches of a rail, each for
        `nodes_per_leaf` nodes; see `topology`.
    scattered: nodes are in no order, and rings of data parallelism cross leaf switches.
    efficiency: share of the peak that matrix products reach, an assumption. One H100
        reached 0.69 in a layer of Llama 3 405B on 8 ranks, and 0.58 in one of
        Llama 3 8B (bf16, torch 2.11).
    link_efficiency: share of the links' rates that transfers reach, an assumption.
    reserved_bytes: of a GPU's memory, for CUDA, NCCL's buffers and fragmentation.
    mtbf_hours: of one GPU with its share of the node, the network and the software;
        the default is Llama 3's 419 interruptions in 54 days of 16,384 GPUs.
    detect_s, restart_s: from a failure to its detection, and from there to work.
    storage_bytes_per_s: at which all GPUs together save a checkpoint.
    price_per_hour: of a GPU. power_factor: watts at the socket for a GPU's watt.

    Raises: InvalidArgument.
    """

    gpu: Gpu
    gpus: int
    _: KW_ONLY
    per_node: int = 8
    outside: Link = LINKS["InfiniBand NDR"]
    nics: int | None = None
    oversubscription: float = 1.0
    nodes_per_leaf: int = 32
    scattered: bool = False
    efficiency: float = 0.65
    link_efficiency: float = 0.85
    reserved_bytes: float = 6 * GB
    mtbf_hours: float = 54 * 24 * 16_384 / 419
    detect_s: float = 60.0
    restart_s: float = 600.0
    storage_bytes_per_s: float = 1 * TB
    price_per_hour: float = 2.0
    power_factor: float = 1.5

    def __post_init__(self):
        if isinstance(self.gpu, str):
            object.__setattr__(self, "gpu", _known(self.gpu))
        object.__setattr__(self, "nics", self.nics or self.per_node)
        for name in ("gpus", "per_node", "nics"):
            value = getattr(self, name)
            if type(value) is not int or value < 1:
                raise InvalidArgument(
                    f"{name} is a whole number from 1 up, and got {value!r}."
                )
        if self.gpus > self.per_node and self.gpus % self.per_node:
            raise InvalidArgument(
                f"{self.gpus} GPUs do not fill nodes of {self.per_node}."
            )
        for name in ("efficiency", "link_efficiency"):
            value = getattr(self, name)
            if not (isinstance(value, int | float) and 0 < value <= 1):
                raise InvalidArgument(
                    f"{name} is above 0 and at most 1; got {value!r}."
                )
        if not self.oversubscription >= 1:
            raise InvalidArgument(
                f"oversubscription is 1 or more; got {self.oversubscription!r}."
            )

    @property
    def across(self) -> float:
        """The factor on the time of bytes that cross leaf switches from all GPUs."""
        one_leaf = self.gpus <= self.per_node * self.nodes_per_leaf
        return 1.0 if one_leaf else self.oversubscription


def _known(name):
    if name not in GPUS:
        known = ", ".join(GPUS)
        raise InvalidArgument(f"GPUS has {known}, and no {name!r}; or give a Gpu.")
    return GPUS[name]

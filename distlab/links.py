"""Links between ranks: the time of a message on each, and `LINKS`, a table of them.

    LINKS["InfiniBand NDR"].seconds(25 * MB)

A rate is that of one direction, in bytes. Data sheets of NVLink add both directions up,
and those of networks count bits. The overhead of headers is not subtracted, so measured
rates are lower. Latencies depend on much more than the wire; these are the figures of
their sources, to compare kinds of links. `distlab.cost.fit_link` measures your own.

Both numbers of a link belong to one protocol. NCCL has three: LL reaches the lowest
latency at half of the rate at most, LL128 is between, and Simple has the full rate.
Where the source is NCCL, the latency is that of Simple.
"""

import math
from dataclasses import dataclass, field

from distlab.errors import InvalidArgument
from distlab.units import GB

__all__ = ["LINKS", "Link"]


@dataclass(frozen=True)
class Link:
    """A link's latency and rate: `latency_s` for each message, then `bytes_per_s`.

    source: a reference for the two numbers. Both hold for one direction.
    Raises: InvalidArgument for a negative or infinite latency, or no rate above 0.
    """

    latency_s: float
    bytes_per_s: float
    source: str = field(default="", repr=False, compare=False)

    def __post_init__(self):
        numbers = [self.latency_s, self.bytes_per_s]
        usable = all(hasattr(x, "__float__") and not math.isnan(x) for x in numbers)
        if not usable or not 0 <= self.latency_s < math.inf or not self.bytes_per_s > 0:
            raise InvalidArgument(
                "a link has a latency in seconds from 0 on and a rate in bytes per "
                f"second above 0, and got {self.latency_s!r} and {self.bytes_per_s!r}. "
                "For example: Link(latency_s=5e-6, bytes_per_s=12.5 * GB)"
            )

    def seconds(self, message_bytes: float) -> float:
        """Return the time that a message takes."""
        return self.latency_s + message_bytes / self.bytes_per_s


_NCCL = "latency: NCCL's for a hop of a ring, protocol Simple, src/graph/tuning.cc"
_RDMA = "latency: 1.93 µs by ping-pong past the kernel, 40 Gb/s, J. Squyres, Cisco 2014"
_TCP = "latency: half of a round trip through two kernels, 20 to 60 µs, kentino.com"
_EFA = "latency: 15.5 µs for MPI, P. DeSantis, AWS re:Invent 2018"
_ETHERNET = "rate: IEEE 802.3"

LINKS = {
    "NVLink 2": Link(
        3.4e-6, 150 * GB, f"rate: 6 links of 25 GB/s, V100 whitepaper; {_NCCL}"
    ),
    "NVLink 3": Link(
        3.4e-6, 300 * GB, f"rate: 12 links of 25 GB/s, A100 whitepaper; {_NCCL}"
    ),
    "NVLink 4": Link(
        3.4e-6, 450 * GB, f"rate: 18 links of 25 GB/s, H100 whitepaper; {_NCCL}"
    ),
    "NVLink 5": Link(
        3.4e-6, 900 * GB, f"rate: 18 links of 50 GB/s, Blackwell brief; {_NCCL}"
    ),
    "PCIe 4": Link(
        5.7e-6, 16 / 8 * 16 * 128 / 130 * GB, f"rate: 16 lanes of 16 GT/s; {_NCCL}"
    ),
    "PCIe 5": Link(
        5.7e-6, 32 / 8 * 16 * 128 / 130 * GB, f"rate: 16 lanes of 32 GT/s; {_NCCL}"
    ),
    "InfiniBand HDR": Link(14e-6, 200 / 8 * GB, f"rate: IBTA, 4 lanes; {_NCCL}"),
    "InfiniBand NDR": Link(14e-6, 400 / 8 * GB, f"rate: IBTA, 4 lanes; {_NCCL}"),
    "EFA": Link(15.5e-6, 100 / 8 * GB, f"rate: one NIC of a p4d or p5; {_EFA}"),
    **{
        f"Ethernet {rate}G {kind}": Link(
            latency_s, rate / 8 * GB, f"{_ETHERNET}; {source}"
        )
        for kind, latency_s, source in (("TCP", 20e-6, _TCP), ("RDMA", 2e-6, _RDMA))
        for rate in (1, 10, 25, 100, 400)
        if (rate, kind) != (1, "RDMA")
    },
}

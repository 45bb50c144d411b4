"""Fabrics between simulated ranks: links, NICs and switches, and their faults.

    Uniform      every rank has one port each way; any two are as near as any others
    Nodes        ranks_per_node ranks share fast links inside, and NICs to the outside
    FatTree      leaf switches with fewer wires up than down
    Rails        nodes with a NIC for each GPU, on a leaf switch of its own rail
    Placed       one of these whose ranks are at other places
    Wires        only the listed pairs
    Slowed, SlowRank, Jittered      one of these with a slow or irregular part
    Overlapped   one of these in which latencies of messages through a port overlap
    Computing    one of these whose ranks take time for products of torch

A message of b bytes takes alpha + b beta seconds once both sides are posted, if it is
alone on its path. It occupies its path meanwhile: a port of each of the two ranks for
all of that time, a shared wire for the time of its bytes. Messages that meet there
share it fairly: two through one port take twice as long.

Source: Hockney, "The communication challenge for MPP" (1994), alpha and beta; Thakur,
Rabenseifner and Gropp (2005), one port each way.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from distlab.errors import InvalidArgument
from distlab.links import Link

__all__ = [
    "Computing",
    "Fabric",
    "FatTree",
    "Jittered",
    "Nodes",
    "Overlapped",
    "Placed",
    "Rails",
    "SlowRank",
    "Slowed",
    "Uniform",
    "Way",
    "Wires",
    "rate_of",
]


class Way(NamedTuple):
    """The path from one rank to another.

    shared: (name, seconds per byte) of wires that other pairs use as well.
    network: name of the two ranks' ports; a rank has one each way on each network.
    overlaps: True if a message occupies the ports only for the time of its bytes.
    """

    latency_s: float
    seconds_per_byte: float
    shared: tuple[tuple[object, float], ...] = ()
    network: str = ""
    overlaps: bool = False


class Fabric(Protocol):
    """An object with the path between two ranks, and each message's jitter.

    seed: of its randomness, None if there is none.
    """

    seed: int | None

    def way(self, src: int, dst: int) -> Way | None:
        """Return the path from `src` to `dst`, None if there is none."""

    def stretch(self, draw: random.Random) -> float:
        """Return the factor on the next message's latency."""


@dataclass(frozen=True)
class _Steady:
    """A fabric without randomness."""

    seed: None = field(default=None, init=False, repr=False)

    def stretch(self, draw: random.Random) -> float:
        """Return 1: nothing varies."""
        return 1.0


@dataclass(frozen=True)
class Uniform(_Steady):
    """Equal links between all ranks."""

    link: Link

    def way(self, src: int, dst: int) -> Way:
        """Return the link, the same for any two ranks."""
        return Way(self.link.latency_s, 1 / self.link.bytes_per_s)


@dataclass(frozen=True)
class Nodes(_Steady):
    """Ranks in nodes: `inside` a node one kind of link, `outside` another.

    Rank r is in node r // ranks_per_node and uses NIC r % nics of it, so that several
    ranks of a node share a NIC if there are fewer. Today's nodes have one for each GPU,
    the default of `nics`. A rank can use its link inside and its NIC at the same time.
    """

    ranks_per_node: int
    inside: Link
    outside: Link
    nics: int | None = None

    def __post_init__(self):
        _check_count("ranks_per_node", self.ranks_per_node)
        if self.nics is not None:
            _check_count("nics", self.nics)

    def way(self, src: int, dst: int) -> Way:
        """Return the path inside the node, or through a NIC of each of two nodes."""
        here, there = src // self.ranks_per_node, dst // self.ranks_per_node
        if here == there:
            inside = 1 / self.inside.bytes_per_s
            return Way(self.inside.latency_s, inside, network="inside")
        per_byte, nics = 1 / self.outside.bytes_per_s, self.nics or self.ranks_per_node
        shared = ()
        if nics < self.ranks_per_node:
            out, into = (here, src % nics), (there, dst % nics)
            shared = (("NIC out", *out), per_byte), (("NIC in", *into), per_byte)
        return Way(self.outside.latency_s, per_byte, shared, "outside")


@dataclass(frozen=True)
class FatTree(_Steady):
    """Leaf switches of `ranks_per_switch` ranks under a spine that connects them all.

    Each leaf has ranks_per_switch / oversubscription wires up, at least one. A message
    takes the wire of its rank's number modulo the wires, as switches that hash
    addresses do, and `spine_latency_s` longer.
    """

    ranks_per_switch: int
    link: Link
    oversubscription: float = 1.0
    spine_latency_s: float = 0.0

    def __post_init__(self):
        _check_count("ranks_per_switch", self.ranks_per_switch)
        if not self.oversubscription >= 1 or not self.spine_latency_s >= 0:
            raise InvalidArgument(
                "oversubscription is 1 or more, wires down for each wire up, and "
                f"spine_latency_s 0 or more; got {self.oversubscription!r} and "
                f"{self.spine_latency_s!r}."
            )

    def way(self, src: int, dst: int) -> Way:
        """Return the path through one leaf, or up, over the spine and down."""
        here, there = src // self.ranks_per_switch, dst // self.ranks_per_switch
        per_byte = 1 / self.link.bytes_per_s
        if here == there:
            return Way(self.link.latency_s, per_byte)
        wires = max(1, round(self.ranks_per_switch / self.oversubscription))
        shared = (
            (("up", here, src % wires), per_byte),
            (("down", there, dst % wires), per_byte),
        )
        return Way(self.link.latency_s + self.spine_latency_s, per_byte, shared)


@dataclass(frozen=True)
class Rails(_Steady):
    """Nodes on rails: GPU i of each node has a NIC on a leaf switch of rail i.

    A leaf has nodes_per_leaf NICs of one rail, and nodes_per_leaf / oversubscription
    wires to the spine, at least one; a message between leaves takes the wire of its
    sender's place. So do messages from rail to rail, which NCCL avoids: it first moves
    them to the GPU of the right rail inside the node.

    Source: NVIDIA, "Doubling all2all performance with NCCL 2.12" (2022).
    """

    ranks_per_node: int
    inside: Link
    outside: Link
    nodes_per_leaf: int = 32
    oversubscription: float = 1.0

    def __post_init__(self):
        _check_count("ranks_per_node", self.ranks_per_node)
        _check_count("nodes_per_leaf", self.nodes_per_leaf)
        if not self.oversubscription >= 1:
            raise InvalidArgument(
                f"oversubscription is 1 or more, and got {self.oversubscription!r}."
            )

    def way(self, src: int, dst: int) -> Way:
        """Return the path inside a node, through one leaf, or over the spine."""
        (here, rail), (there, other) = (
            divmod(rank, self.ranks_per_node) for rank in (src, dst)
        )
        if here == there:
            per_byte = 1 / self.inside.bytes_per_s
            return Way(self.inside.latency_s, per_byte, network="inside")
        per_byte, many = 1 / self.outside.bytes_per_s, self.nodes_per_leaf
        leaf, far = (here // many, rail), (there // many, other)
        shared = ()
        if leaf != far:
            wire = here % many % max(1, round(many / self.oversubscription))
            shared = (("up", *leaf, wire), per_byte), (("down", *far, wire), per_byte)
        return Way(self.outside.latency_s, per_byte, shared, "outside")


@dataclass(frozen=True)
class Wires(_Steady):
    """Only the pairs in `links`, from (sender, receiver) to its link, are connected."""

    links: Mapping[tuple[int, int], Link]

    def way(self, src: int, dst: int) -> Way | None:
        """Return the wire from `src` to `dst`, None if there is none."""
        link = self.links.get((src, dst))
        return link and Way(link.latency_s, 1 / link.bytes_per_s)


@dataclass(frozen=True)
class _Over:
    """A fabric over another one, with its paths and its randomness."""

    fabric: Fabric

    @property
    def seed(self):
        """The seed of the fabric underneath."""
        return self.fabric.seed

    def way(self, src: int, dst: int) -> Way | None:
        """Return the path of the fabric underneath."""
        return self.fabric.way(src, dst)

    def stretch(self, draw: random.Random) -> float:
        """Return the factor of the fabric underneath."""
        return self.fabric.stretch(draw)


@dataclass(frozen=True)
class Placed(_Over):
    """A fabric in which rank r has the place `places[r]`, as a scheduler gave it."""

    places: tuple[int, ...]

    def way(self, src: int, dst: int) -> Way | None:
        """Return the path between the two ranks' places."""
        return super().way(self.places[src], self.places[dst])


@dataclass(frozen=True)
class _Slower(_Over):
    """A fabric over another one, in which some paths take `factor` times as long."""

    def __post_init__(self):
        if not self.factor > 0:
            raise InvalidArgument(
                "factor is how many times as long it takes, above 0, and got "
                f"{self.factor!r}."
            )

    def way(self, src: int, dst: int) -> Way | None:
        """Return the path of the fabric underneath, longer if it is a slow one."""
        way = super().way(src, dst)
        if way is None or not self._is_slow(src, dst):
            return way
        latency_s, per_byte = way.latency_s, way.seconds_per_byte
        return way._replace(
            latency_s=latency_s * self.factor, seconds_per_byte=per_byte * self.factor
        )


@dataclass(frozen=True)
class Slowed(_Slower):
    """A fabric in which the path from `src` to `dst` takes `factor` times as long."""

    src: int
    dst: int
    factor: float

    def _is_slow(self, src, dst):
        return (src, dst) == (self.src, self.dst)


@dataclass(frozen=True)
class SlowRank(_Slower):
    """A fabric in which each message to or from `rank` takes `factor` times as long."""

    rank: int
    factor: float

    def _is_slow(self, src, dst):
        return self.rank in (src, dst)


@dataclass(frozen=True)
class Overlapped(_Over):
    """A fabric in which messages that meet at a port share it for their bytes only.

    So it is where several channels send at once: each waits for its own latency. Where
    a rank sends one message at a time, nothing changes.
    """

    def way(self, src: int, dst: int) -> Way | None:
        """Return the path of the fabric underneath, with overlapping latencies."""
        way = super().way(src, dst)
        return way and way._replace(overlaps=True)


@dataclass(frozen=True)
class Computing(_Over):
    """A fabric whose ranks take time for torch's products: FLOPs / `flops_per_s`.

    Forward and backward are timed so, without a word in the function that runs.
    """

    flops_per_s: float

    def __post_init__(self):
        if not self.flops_per_s > 0:
            raise InvalidArgument(
                f"flops_per_s is above 0, and got {self.flops_per_s!r}. For example, "
                "half of an H100's peak: Computing(fabric, flops_per_s=0.5 * 989e12)"
            )


def rate_of(fabric: Fabric) -> float | None:
    """Return the FLOP/s of a fabric's ranks; None if their products take no time."""
    while fabric is not None and not isinstance(fabric, Computing):
        fabric = getattr(fabric, "fabric", None)
    return fabric and fabric.flops_per_s


@dataclass(frozen=True)
class Jittered(_Over):
    """A fabric whose latencies vary, each message's by its own draw.

    A latency is multiplied by 1 plus an exponential draw of mean `spread`: mostly close
    to 1, now and then much more. The same `seed` draws the same.
    """

    spread: float
    seed: int = 0

    def __post_init__(self):
        if not self.spread > 0:
            raise InvalidArgument(
                f"spread is a share of the latency above 0, and got {self.spread!r}. "
                "For example: Jittered(fabric, spread=0.1, seed=1)"
            )

    def stretch(self, draw: random.Random) -> float:
        """Return a random factor of 1 or more."""
        return super().stretch(draw) * (1 + draw.expovariate(1 / self.spread))


def _check_count(name, value):
    if type(value) is not int or value < 1:
        raise InvalidArgument(f"{name} is a whole number from 1 on, and got {value!r}.")

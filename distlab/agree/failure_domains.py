"""Failure domains: the machines that fail together, and the copies that survive it.

    zone ─ row ─ rack ─ machine       each inside the one before it
    power feed                        crosses the rows of a zone: rack k of each

A placement is the machines that hold a block's copies. What it survives is counted by
enumeration: every pair of domains fails, once.
"""

from collections.abc import Sequence
from itertools import combinations, product
from typing import NamedTuple

from distlab.errors import InvalidArgument
from distlab.show.table import html_report, text_report

__all__ = ["KINDS", "Datacenter", "Machine", "Survival", "survival"]

KINDS = ("machine", "rack", "power", "row", "zone")


class Machine(NamedTuple):
    """A machine, named by its zone, row, rack and place in the rack, each from 0."""

    zone: int
    row: int
    rack: int
    place: int

    def domain(self, kind: str) -> tuple[int, ...]:
        """Return the number of the failure domain of this kind that it is in."""
        if kind not in KINDS:
            raise InvalidArgument(f"kind={kind!r}: a failure domain is one of {KINDS}.")
        if kind == "power":
            return self.zone, self.rack
        return self[: 1 + ("zone", "row", "rack", "machine").index(kind)]


class Datacenter(tuple):
    """The machines of some zones, with so many rows, racks and machines in each."""

    def __new__(cls, zones: int = 3, rows: int = 2, racks: int = 3, machines: int = 4):
        counts = {"zones": zones, "rows": rows, "racks": racks, "machines": machines}
        for name, count in counts.items():
            if not isinstance(count, int) or count < 1:
                raise InvalidArgument(f"{name}={count!r}: it is a number from 1 on.")
        places = product(*map(range, counts.values()))
        return super().__new__(cls, (Machine(*place) for place in places))

    def domains(self, kind: str) -> list[tuple[int, ...]]:
        """Return the numbers of all failure domains of a kind."""
        return sorted({machine.domain(kind) for machine in self})

    def hdfs(self, writer: Machine | None = None) -> tuple[Machine, ...]:
        """Return three machines in two racks, as HDFS places copies.

        The first is the writer's own, the second in another rack, the third beside it
        in that rack; of several the first in order, where HDFS takes one at random.
        Raises: InvalidArgument if there is no second rack, of two machines.
        Source: Apache Hadoop, "HDFS architecture", replica placement.
        """
        first = writer or self[0]
        rack = first.domain("rack")
        remote = [each for each in self if each.domain("rack") != rack][:2]
        if len({each.domain("rack") for each in remote}) != 1 or len(remote) < 2:
            raise InvalidArgument(
                "HDFS puts two copies into a second rack: the data center needs 2 "
                "racks with 2 machines or more."
            )
        return (first, *remote)

    def apart(self, kind: str, copies: int = 3) -> tuple[Machine, ...]:
        """Return a machine in each of so many domains of a kind, the first ones.

        Raises: InvalidArgument if there are fewer domains.
        """
        firsts = {machine.domain(kind): machine for machine in reversed(self)}
        if copies not in range(1, len(firsts) + 1):
            raise InvalidArgument(
                f"copies={copies!r}: with one in each {kind}, it is 1 to {len(firsts)}."
            )
        return tuple(firsts[domain] for domain in sorted(firsts)[:copies])


class Survival(dict):
    """Counts of what survives: pair of kinds -> (pairs of domains, those that leave a
    copy, those that leave a majority of the copies); in a notebook a table.
    """

    def _report(self, report):
        rows = [("two failures", "pairs", "a copy left", "a majority left")]
        rows += [(" + ".join(kinds), *map(str, self[kinds])) for kinds in self]
        return report("Pairs of failures, and what is left after them", rows, "<>>>")

    def __repr__(self):
        return self._report(lambda *table: text_report(*table, []))

    def _repr_html_(self):
        return self._report(html_report)


def survival(
    datacenter: Datacenter,
    placement: Sequence[Machine],
    kinds: Sequence[str] = KINDS,
) -> Survival:
    """Count the pairs of failures, of each two kinds, that a placement survives.

    A failed domain takes all of its machines with it. A copy that is left can be read;
    a majority of all copies is what a quorum needs.

    Raises: InvalidArgument for a placement that is not on distinct machines of it.
    """
    copies = set(placement)
    if not copies or len(copies) < len(placement) or copies - set(datacenter):
        raise InvalidArgument(
            f"a placement is distinct machines of the data center; got {placement!r}."
        )
    counts = Survival()
    for at, one in enumerate(kinds):
        for other in kinds[at:]:
            failures = product(datacenter.domains(one), datacenter.domains(other))
            if one == other:
                failures = combinations(datacenter.domains(one), 2)
            left = [
                sum(m.domain(one) != a and m.domain(other) != b for m in copies)
                for a, b in failures
            ]
            majority = sum(2 * n > len(copies) for n in left)
            counts[one, other] = len(left), sum(n > 0 for n in left), majority
    return counts

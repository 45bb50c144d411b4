"""A search over all layouts of a cluster: the best, the runner-up, the rejected.

    found = search(llama, GpuCluster("H100 80GB", 4096), run)
    found.best, found.runner_up, found.lost_by(), found.rejected

It visits every mesh tp * pp * cp * dp of the GPUs, with every ep, ZeRO stage, schedule
(DualPipe where it is given), recomputation and microbatch of a power of two, and
computes the formulas of each that divides: memory first, and the time of what fits.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import product

from distlab.cost import TransformerShape
from distlab.errors import InvalidArgument
from distlab.plan.cluster import GpuCluster
from distlab.plan.formulas import FORMULAS, LEVELS, walk
from distlab.plan.layout import Layout, TrainingRun
from distlab.plan.plan import Plan, inputs, misfit, plan
from distlab.show.table import html_report, text_report
from distlab.units import readable_bytes

__all__ = ["LayoutSearch", "pareto", "search"]

_FIELDS = [name for level in LEVELS for name in level]
_TERMS = ("compute_s", "tp_s", "cp_s", "ep_s", "pp_s")


@dataclass(frozen=True)
class LayoutSearch:
    """The result of a search.

    ranking: the best plan of each mesh, best first; empty if no layout fits.
    rejected: reason -> number of layouts, or of meshes, where no layout of it divides.
    nearest_miss: the plan that needs least memory, where none fits.
    """

    by: str
    ranking: list[Plan]
    rejected: Counter = field(default_factory=Counter)
    fitting: int = 0
    nearest_miss: Plan | None = None

    @property
    def best(self) -> Plan:
        """The best plan.

        Raises: InvalidArgument naming the nearest miss, if no layout fits.
        """
        if not self.ranking:
            raise InvalidArgument(self._nothing_fits())
        return self.ranking[0]

    @property
    def runner_up(self) -> Plan | None:
        """The best plan of another mesh; None if there is no other."""
        return self.ranking[1] if len(self.ranking) > 1 else None

    def lost_by(self, other: Plan | None = None) -> dict[str, float]:
        """Return the terms of the step by which a plan is slower, largest first.

        In seconds; the runner-up's, if no other plan is given.
        """
        best, other = self.best, other or self.runner_up
        if other is None:
            return {}
        ours, theirs = step_terms(best), step_terms(other)
        more = {name: theirs[name] - ours[name] for name in ours}
        return dict(sorted(more.items(), key=lambda term: -term[1]))

    def _nothing_fits(self):
        miss = self.nearest_miss
        if miss is None:
            return f"no layout divides: {dict(self.rejected)}."
        over = miss.memory_bytes - miss.cluster.gpu.memory_bytes
        return (
            f"no layout fits. The nearest, {miss.layout}, needs "
            f"{readable_bytes(miss.memory_bytes)}: {readable_bytes(over)} too much."
        )

    def _parts(self):
        if not self.ranking:
            return self._nothing_fits(), [], ""
        rows = [("layout", self.by, "memory", "MFU", "slower most by")]
        for one in self.ranking[:6]:
            name, more = next(iter(self.lost_by(one).items()))
            why = f"{name} +{more:.3g} s" if one is not self.best and more > 0 else ""
            value = f"{getattr(one, self.by):.4g} {FORMULAS[self.by].unit}"
            memory = readable_bytes(one.memory_bytes)
            rows.append((str(one.layout), value, memory, f"{one.mfu:.1%}", why))
        return f"{self.fitting:,} layouts fit", rows, "<>>><"

    def _notes(self):
        counts = self.rejected.most_common()
        notes = [f"{count:,} rejected: {why}" for why, count in counts]
        shown = [one.layout for one in self.ranking[:6]]
        if any(each.schedule[:2] == "ZB" and each.zero > 1 for each in shown):
            notes.append(
                "No public framework that we know joins zero-bubble schedules with "
                'ZeRO-2 or 3; fix what yours runs, as schedule="interleaved", zero=1.'
            )
        return notes

    def __repr__(self):
        return text_report(*self._parts(), self._notes())

    def _repr_html_(self):
        return html_report(*self._parts(), self._notes())


def step_terms(plan: Plan) -> dict[str, float]:
    """Return the parts of `step_s` by name, in seconds."""
    found = {name: plan.m * getattr(plan, name) for name in _TERMS}
    found["hidden_s"] = -plan.m * plan.hidden_s
    for name in ("bubble_s", "dp_exposed_s", "optimizer_s"):
        found[name] = getattr(plan, name)
    return found


def search(
    model: TransformerShape,
    cluster: GpuCluster,
    run: TrainingRun,
    *,
    by: str = "step_s",
    **fixed,
) -> LayoutSearch:
    """Return the layouts with the smallest number `by`, among those that fit.

    by: a name of `FORMULAS`; with a minus in front, the largest: "-mfu".
    fixed: fields of `Layout` that are given, such as tp=8.

    Raises: InvalidArgument for a name that there is not.
    """
    name, sign = by.removeprefix("-"), -1 if by.startswith("-") else 1
    if name not in FORMULAS:
        raise InvalidArgument(f"by is one of {', '.join(FORMULAS)}; got {by!r}.")
    walked = _Walk(model, cluster, run, fixed)
    best, miss, fitting = {}, None, 0
    given = inputs(model, cluster, Layout(**fixed), run)
    choices = walked.meshes, walked.microbatches, walked.schedules
    choices += walked.recomputes, walked.zeros
    limit = cluster.gpu.memory_bytes
    for fields, need, value in walk(given, choices, limit, name):
        if value is None:
            if miss is None or need < miss[0]:
                miss = need, fields
            walked.rejected["memory"] += 1
            continue
        fitting += 1
        mesh = fields[:5]
        if mesh not in best or sign * value < best[mesh][0]:
            best[mesh] = sign * value, fields

    def planned(fields):
        chosen = dict(zip(_FIELDS, fields, strict=True))
        return plan(model, cluster, Layout(**(fixed | chosen)), run)

    ranking = [planned(fields) for _, fields in sorted(best.values())]
    nearest = planned(miss[1]) if miss and not ranking else None
    return LayoutSearch(name, ranking, walked.rejected, fitting, nearest)


class _Walk:
    """The choices of each of `LEVELS`, and counts of those that do not divide."""

    def __init__(self, model, cluster, run, fixed):
        self.model, self.cluster, self.run, self.fixed = model, cluster, run, fixed
        self.rejected = Counter()

    def meshes(self) -> Iterator[tuple]:
        """Yield every mesh that divides the GPUs, the model and the batch."""
        gpus, model = self.cluster.gpus, self.model
        experts = self._of("ep", _divisors(model.experts))
        for tp, pp in product(
            self._of("tp", _divisors(gpus)),
            self._of("pp", _divisors(gpus, model.layers)),
        ):
            for cp in self._of("cp", _divisors(gpus // (tp * pp))):
                dp = gpus // (tp * pp * cp)
                for ep in experts:
                    sizes = {"tp": tp, "pp": pp, "cp": cp, "ep": ep, "dp": dp}
                    if self.fixed.get("dp", dp) == dp and self._fits(**sizes):
                        yield tp, pp, cp, ep, dp

    def microbatches(self, dp: int) -> list[int]:
        """Return the microbatches, powers of two, that divide a replica's batch."""
        each = self.run.batch // dp
        powers = [2**k for k in range(each.bit_length()) if each % 2**k == 0]
        return self._of("microbatch", powers)

    def schedules(self, pp: int, m: float) -> Iterator[tuple[str, int]]:
        """Yield schedules with their chunks."""
        found = [("1F1B", 1)]
        if pp > 1:
            chunks = _divisors(self.model.layers // pp)[1:]
            found += [(schedule, 1) for schedule in _OTHERS]
            if self.fixed.get("schedule") == "DualPipe" and pp % 2 == m % 2 == 0:
                found.append(("DualPipe", 1))
            found += [("interleaved", v) for v in chunks]
        for schedule, v in found:
            if schedule == "interleaved" and m % pp:
                self.rejected["interleaved needs microbatches in groups of pp"] += 1
            elif [schedule, v] == self._of("schedule", [schedule]) + self._of(
                "chunks", [v]
            ):
                yield schedule, v

    def recomputes(self) -> list[str]:
        """Return the kinds of recomputation that differ."""
        fused = self.run.fused
        kinds = ["none", "full"] if fused else ["none", "selective", "full"]
        return self._of("recompute", kinds)

    def zeros(self, n: int) -> list[int]:
        """Return the stages of ZeRO that differ."""
        return self._of("zero", [0, 1, 2, 3] if n > 1 else [0])

    def _of(self, name, choices):
        return [self.fixed[name]] if name in self.fixed else choices

    def _fits(self, **sizes):
        given = {"microbatch": 1, "chunks": 1}
        reason = misfit(self.model, self.cluster, self.run, **sizes, **given)
        if reason:
            self.rejected[f"{reason[0]} (meshes)"] += 1
        return not reason


_OTHERS = ("GPipe", "ZB-H1", "ZB-H2", "ZB-V")


def _divisors(n, most=None):
    return [k for k in range(1, min(n, most or n) + 1) if n % k == 0]


def pareto(plans: Iterable[Plan], *by: str) -> list[Plan]:
    """Return the plans to which no other is better in all of `by`.

    by: names of `FORMULAS`, smaller is better, or larger with a minus in front. They
    come in the order of the first.
    """
    signs = [(name.removeprefix("-"), -1 if name[0] == "-" else 1) for name in by]

    def values(one):
        return tuple(sign * getattr(one, name) for name, sign in signs)

    found, all_of_them = [], sorted(plans, key=values)
    for one in all_of_them:
        mine = values(one)
        dominated = any(
            all(a <= b for a, b in zip(values(other), mine, strict=True))
            for other in found
        )
        if not dominated:
            found.append(one)
    return found

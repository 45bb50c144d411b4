"""The check of k-means: the centres, what was sent, what was computed how often."""

from distlab.dataflow.trial.plain import value_of
from distlab.grading.rdds.check import RddCheck
from distlab.grading.rdds.k_means_hints import HINTS, hint_for_centres, hint_for_parsing
from distlab.grading.rdds.point_shapes import lloyd, points_of, shape

__all__ = ["ClustersFound"]

_WIDE = 70
_CENTRE_BYTES = 400  # for each cluster and partition; sums of numpy take about 200


class ClustersFound(RddCheck):
    """The centres after some steps; each line is parsed once, and only lost ones again.

    function: kmeans; whatever it uses travels with it.
    """

    _scene = "clusters"
    _hints = HINTS

    def _case(self):
        return shape(self.name)

    def _wrong(self, case, seen):
        clean, killed = seen["clean"], seen["killed"]
        wrong = (
            self._no_centres(case, clean)
            or self._differs(case, clean)
            or self._too_much(case, clean)
            or self._parsed(case, clean)
            or self._kept_twice(case, clean)
            or self._jobs(case, clean)
        )
        if wrong or not case["killed"]:
            return wrong
        if killed["fired"] != 1 or not killed["lost"]:
            lost = len(killed["lost"])
            found = (
                f"{killed['fired']} workers were killed, {lost} kept partitions lost."
            )
            return self._inconclusive(found)
        return self._differs(case, killed) or self._again(case, killed)

    def _no_centres(self, case, seen):
        """Return a verdict if what came back is no list of points, one per cluster."""
        centres = seen["centres"]
        wide = len(case["centres"][0])
        if isinstance(centres, dict):
            found = f"The function returned {_cut(repr(value_of(centres['odd'])))}."
            return self._fail(found, HINTS["no list"])
        for centre in centres:
            if not _is_point(centre, wide):
                found = f"One of the centres that came back is {value_of(centre)!r}."
                return self._fail(found, HINTS["no point"])
        if len(centres) != len(case["centres"]):
            found = (
                f"{len(case['centres'])} centres began, and {len(centres)} came back."
            )
            return self._fail(found, HINTS["empty"])
        return None

    def _differs(self, case, seen):
        """Return a verdict if a centre is somewhere else."""
        parts = points_of(case["parts"])
        expected = lloyd(parts, case["centres"], case["steps"])
        yours = [tuple(map(float, centre)) for centre in seen["centres"]]
        if seen["changed"]:
            found = "Your function changed the list of centres that it was given."
            return self._fail(found, HINTS["changed"])
        apart = [
            n for n, both in enumerate(zip(expected, yours, strict=True)) if _far(*both)
        ]
        if not apart:
            return None
        first = expected[apart[0]], yours[apart[0]]
        digits = next(
            (n for n in (5, 9, 13) if len({_told(c, n) for c in first}) > 1), 17
        )
        wide = max(30, *(len(_told(right, digits)) for right in expected))
        lines = [f"{'':3}{'expected':{wide}}  yours"]
        for number, both in enumerate(zip(expected, yours, strict=True)):
            mark = "  ← first difference" if number == apart[0] else ""
            right, own = (_told(centre, digits) for centre in both)
            lines.append(f"{number:<3}{right:{wide}}  {own}{mark}")
        after = " with a worker killed" * bool(seen["fired"])
        lines.insert(0, f"after {case['steps']} steps{after}:")
        if seen["fired"]:
            return self._fail("\n".join(lines), HINTS["killed"])
        return self._fail("\n".join(lines), hint_for_centres(parts, case, yours))

    def _too_much(self, case, seen):
        """Return a verdict if points come to the driver, or cross the network."""
        clusters, parts = len(case["centres"]), len(case["parts"])
        allowed = 1000 + _CENTRE_BYTES * clusters * parts
        lines = sum(map(len, case["parts"]))
        for number, job in enumerate(seen["jobs"]):
            if job["bytes"] > allowed:
                found = (
                    f"The centres are right. Job {number}, {job['action']}, brought "
                    f"{job['bytes']:,} bytes to the driver."
                )
                return self._fail(found, HINTS["driver"])
            if job["records"] > clusters * parts:
                found = (
                    f"The centres are right. Job {number}, {job['action']}, sent "
                    f"{job['records']:,} records through a shuffle, for {lines:,} "
                    f"points. {clusters} for each partition are enough, "
                    f"{clusters * parts}."
                )
                return self._fail(found, HINTS["shuffle"])
            if job["sent_bytes"] > allowed:
                found = (
                    f"The centres are right. Job {number}, {job['action']}, sent "
                    f"{job['sent_bytes']:,} bytes through a shuffle, for {lines:,} "
                    f"points; {allowed:,} are more than enough."
                )
                return self._fail(found, HINTS["shuffle"])
        return None

    def _parsed(self, case, seen):
        """Return a verdict if a line was not parsed once."""
        lines, steps = sum(map(len, case["parts"])), case["steps"]
        if not steps or (seen["parsed"] == lines and set(seen["ran"]) == {1}):
            return None
        told = [
            f"The centres are right. For {lines:,} lines and {steps} steps, parse was "
            f"called {seen['parsed']:,} times; {lines:,} are enough.",
            "job  kept              partitions computed  read from the cache",
        ]
        for number, job in enumerate(seen["jobs"][:6]):
            for kept, label, computed, reused in job["kept"] or [
                ("", "nothing", "-", "-")
            ]:
                who = f"RDD {kept}, {label}" if kept != "" else label
                told.append(f"{number:<3}  {who:16}  {computed!s:19}  {reused}")
        return self._fail("\n".join(told), hint_for_parsing(seen, lines))

    def _kept_twice(self, case, seen):
        """Return a verdict if the workers keep more than one RDD."""
        kept = {row[0]: row[1] for job in seen["jobs"] for row in job["kept"]}
        if len(kept) < 2:
            return None
        told = " and ".join(f"RDD {number}, {label}" for number, label in kept.items())
        found = f"Each line was parsed once. What the workers keep: {told}."
        return self._fail(found, HINTS["kept twice"])

    def _jobs(self, case, seen):
        """Return a verdict if points are read too often, or all steps are one job."""
        jobs, steps = len(seen["jobs"]), case["steps"]
        read = sum(any(sum(row[2:]) for row in job["kept"]) for job in seen["jobs"])
        found = f"The centres are right. {steps} steps took {jobs} jobs"
        if read > steps + 1:  # the one may be to keep them
            found += f", {read} of which read all points."
            return self._fail(found, HINTS["many jobs"])
        if jobs < min(steps, 2):
            return self._fail(f"{found}.", HINTS["one job"])
        return None

    def _again(self, case, seen):
        """Return a verdict if others than the lost partitions were computed again."""
        sizes = list(map(len, case["parts"]))
        lost = set(seen["lost"])
        again = [2 if number in lost else 1 for number in range(len(sizes))]
        parsed = sum(size * times for size, times in zip(sizes, again, strict=True))
        if seen["ran"] == again and seen["parsed"] == parsed:
            return None
        lines = [
            f"Partitions {sorted(lost)} were lost with their worker. How often each "
            "was computed:",
            f"expected  {again}",
            f"yours     {seen['ran']}",
            f"parse was called {seen['parsed']:,} times; {parsed:,} are enough.",
        ]
        return self._fail("\n".join(lines), HINTS["again"])


def _cut(text):
    return text if len(text) <= _WIDE else f"{text[: _WIDE - 3]}..."


def _is_point(centre, wide):
    whole = isinstance(centre, list) and len(centre) == wide
    return whole and all(type(x) is float or _small(x) for x in centre)


def _small(x):
    """Whether this is a whole number that a float can be."""
    return type(x) is int and abs(x) < 2**1000


def _far(one, other):
    pairs = zip(one, other, strict=True)
    return not all(abs(a - b) <= 1e-9 * max(1.0, abs(a)) for a, b in pairs)


def _told(centre, digits):
    return "(" + ", ".join(f"{x:.{digits}g}" for x in centre) + ")"

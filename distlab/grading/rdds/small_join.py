"""The check of a join with a small table: no shuffle, and one table for each worker."""

from distlab.dataflow.trial.plain import value_of
from distlab.grading.jobs.tables import beside
from distlab.grading.rdds.check import NARROW, RddCheck
from distlab.grading.rdds.pair_shapes import LONG, joined_pairs, large_and_small
from distlab.grading.rdds.small_join_hints import HINTS, hint_for_pairs

__all__ = ["MapSideJoin"]

_HEADS = "key", "expected", "yours"
_WORKERS = 2
_WIDE = 22
_MOST_IN_A_TASK = 20_000  # bytes; who packs the long table tightly needs more
_LOOKUPS = 10  # for each record and each row; a dictionary needs about 2


class MapSideJoin(RddCheck):
    """Every two pairs with one key, without a shuffle; the table is a broadcast.

    function: join_small. name: of the case, such as "an empty table".
    """

    _scene = "joined"
    _hints = HINTS

    @property
    def _timeout_s(self):
        return 20 if self.name == LONG else 40  # a look-up takes 1, a search over 60

    def _case(self):
        return large_and_small(self.name)

    def _wrong(self, case, seen):
        return (
            self._not_an_rdd(seen)
            or self._shuffled(seen)
            or self._differs(case, seen)
            or self._many_tables(case, seen)
            or self._long_search(case, seen)
        )

    def _shuffled(self, seen):
        """Return a verdict if more than one stage is needed, or another RDD."""
        others = [operation for operation in seen["names"] if operation not in NARROW]
        if not others and seen["stages"] == 1:
            return None
        found = f"In the lineage of what came back is {others[-1] if others else '?'}"
        if seen["stages"] > 1:
            found += f", and it took {seen['stages']} stages; 1 is enough."
            return self._fail(found, HINTS["shuffle"])
        return self._fail(f"{found}.", HINTS["another rdd"])

    def _differs(self, case, seen):
        """Return a verdict if other pairs come out than should."""
        expected = _by_key(joined_pairs(case["parts"], case["small"]))
        records = [value_of(record) for part in seen["parts"] for record in part]
        odd = next((r for r in records if type(r) is not tuple or len(r) != 2), None)
        if odd is not None:
            found = f"One of the records that came out is {odd!r}."
            return self._fail(found, HINTS["no pair"])
        yours = _by_key(records)
        every = sorted({*expected, *yours})
        first = next((k for k in every if expected.get(k) != yours.get(k)), None)
        if first is None:
            return None
        rows = [
            (key, *_cut_apart(expected.get(key, []), yours.get(key, [])))
            for key in every
        ]
        lines = beside(rows, every.index(first), _HEADS)
        large = [v for part in case["parts"] for k, v in part if repr(k) == first]
        small = [v for k, v in case["small"] if repr(k) == first]
        lines.append(
            f"{first}: {_few(large)} in the large one, {_few(small)} in the small"
        )
        hint = hint_for_pairs(large, small, yours.get(first, []))
        return self._fail("\n".join(lines), hint)

    def _many_tables(self, case, seen):
        """Return a verdict if the table travels in tasks, or in many pieces."""
        sent, table = seen["program_bytes"], seen["table_bytes"]
        fetched, pairs = seen["fetched"], any(seen["parts"])
        most = min(table / 2, _MOST_IN_A_TASK)
        if (pairs and not fetched) or (len(case["small"]) > 100 and sent > most):
            found = (
                f"The pairs are right. What each task has to read first is "
                f"{sent:,} bytes; the table takes {table:,}. Workers fetched "
                f"{fetched} broadcasts."
            )
            key = "value outside" if seen["broadcasts"] else "in each task"
            return self._fail(found, HINTS[key])
        if fetched > _WORKERS:
            found = (
                f"The pairs are right. {_WORKERS} workers fetched {fetched} broadcasts."
            )
            return self._fail(found, HINTS["pieces"])
        return None

    def _long_search(self, case, seen):
        """Return a verdict if records are searched for, and not looked up."""
        sizes = sum(map(len, case["parts"])), len(case["small"])
        allowed = _LOOKUPS * sum(sizes)
        if seen["lookups"] <= allowed:
            return None
        found = (
            f"The pairs are right. For {sizes[0]} records and {sizes[1]} rows the "
            f"workers hashed or compared keys {seen['lookups']:,} times."
        )
        return self._fail(found, HINTS["search"])


def _by_key(pairs):
    """Return key -> its values in words, sorted."""
    values = {}
    for key, value in pairs:
        values.setdefault(repr(key), []).append(repr(value))
    return {key: sorted(own) for key, own in values.items()}


def _cut(words):
    return [word if len(word) <= _WIDE else f"{word[: _WIDE - 3]}..." for word in words]


def _cut_apart(some, others):
    """Return the same words, cut, unless those look alike that are not."""
    cut = _cut(some), _cut(others)
    return cut if cut[0] != cut[1] else (some, others)


def _few(values):
    return (
        ", ".join(_cut(list(map(repr, values[:4])))) + ", ..." * (len(values) > 4)
        or "nothing"
    )

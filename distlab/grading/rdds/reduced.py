"""The checks of a reduce_by_key: what comes out, what is sent, where it lies then."""

from collections import Counter
from functools import reduce

from distlab.dataflow.trial.plain import value_of
from distlab.dataflow.trial.rdd_functions import FUNCTIONS
from distlab.grading.jobs.tables import beside
from distlab.grading.rdds.check import NARROW, RddCheck
from distlab.grading.rdds.pair_shapes import joined_pairs, reduced_pairs, shape
from distlab.grading.rdds.reduced_hints import (
    HINTS,
    hint_for_operation,
    hint_for_records,
    hint_for_value,
)

__all__ = ["JoinedInPlace", "ReducedByKey"]

_HEADS = "key", "expected", "yours"
_RECORD_BYTES = 60  # a pair of these cases takes less than 20
_PIECE_BYTES = 120
_MANY_KEYS = 8  # that all have one place by chance is rarer than 1 in 100


class ReducedByKey(RddCheck):
    """All values of a key made one, with one record for each key of a map task sent.

    function: reduce_by_key. name: such as "one key".
    """

    _scene = "reduced"
    _hints = HINTS

    def _case(self):
        return shape(self.name)

    def _wrong(self, case, seen):
        return (
            self._not_an_rdd(seen)
            or self._ready_made(seen)
            or self._no_pairs(case, seen)
            or self._twice(case, seen)
            or self._differs(case, seen)
            or self._elsewhere(case, seen)
            or self._one_place(case, seen)
            or self._too_much(case, seen)
        )

    def _ready_made(self, seen):
        """Return a verdict if the engine's own operations by key were used."""
        others = [n for n in seen["names"] if n not in {*NARROW, "partitionBy"}]
        if seen["combines"] and not others:
            others = ["the engine's own way to combine"]
        if not others:
            return None
        found = f"In the lineage of what came back is {others[-1]}."
        return self._fail(found, hint_for_operation(others[-1]))

    def _no_pairs(self, case, seen):
        """Return a verdict if there are records that are no pairs."""
        for part in seen["parts"]:
            for record in map(value_of, part):
                if type(record) is not tuple or len(record) != 2:
                    found = f"One of the records that came out is {record!r}."
                    return self._fail(found, HINTS["no pair"])
        return None

    def _twice(self, case, seen):
        """Return a verdict if a key comes out more than once."""
        homes = {}
        for number, part in enumerate(seen["parts"]):
            for key, value in map(value_of, part):
                homes.setdefault(repr(key), []).append((number, value))
        expected = reduced_pairs(case["parts"], FUNCTIONS[case["function"]])
        for key, wanted in expected.items():
            found = homes.get(repr(key), [])
            if len(found) < 2:
                continue
            values = ", ".join(repr(value) for _, value in found[:6])
            parts = sorted({number for number, _ in found})
            apart = len(parts) > 1
            where = (
                f"partitions {parts[0]} and {parts[1]}"
                if apart
                else f"partition {parts[0]}"
            )
            lines = [
                f"The key {key!r} comes out {len(found)} times, in {where}.",
                f"expected  {wanted!r}",
                f"yours     {values}",
            ]
            shares = _shares(case, repr(key))
            kind = "apart" if apart else _kind_of_double(shares, wanted, found, case)
            return self._fail("\n".join(lines), HINTS[kind])
        return None

    def _differs(self, case, seen):
        """Return a verdict if a key's value is another one."""
        function = FUNCTIONS[case["function"]]
        expected = reduced_pairs(case["parts"], function)
        expected = {repr(key): repr(value) for key, value in expected.items()}
        pairs = [value_of(pair) for part in seen["parts"] for pair in part]
        yours = {repr(key): repr(value) for key, value in pairs}
        every = sorted({*expected, *yours})
        first = next((k for k in every if expected.get(k) != yours.get(k)), None)
        if first is None:
            return None
        rows = [
            (key, _listed(expected.get(key)), _listed(yours.get(key))) for key in every
        ]
        lines = [f"made one by: {case['function']}"]
        lines += beside(rows, every.index(first), _HEADS)
        found, hint = hint_for_value(
            _shares(case, first),
            function,
            next((v for k, v in pairs if repr(k) == first), None),
            missing=first not in yours,
            foreign=first not in expected,
            nothing=not pairs,
            truth=all(
                repr(value) == repr(_if_true(_shares(case, repr(key)), function))
                for key, value in pairs
            ),
        )
        return self._fail("\n".join([*lines, *found]), hint)

    def _elsewhere(self, case, seen):
        """Return a verdict if there are more or fewer partitions than asked for."""
        if seen["partitions"] == case["partitions"]:
            return None
        found = (
            f"The result is right, in {seen['partitions']} partitions; "
            f"{case['partitions']} were asked for."
        )
        return self._fail(found, HINTS["partitions"])

    def _one_place(self, case, seen):
        """Return a verdict if many keys all lie in one of several partitions."""
        sizes = list(map(len, seen["parts"]))
        if (
            case["partitions"] == 1
            or sum(sizes) < _MANY_KEYS
            or max(sizes) < sum(sizes)
        ):
            return None
        found = (
            f"The result is right. How many keys its {len(sizes)} partitions have: "
            f"{', '.join(map(str, sizes))}."
        )
        return self._fail(found, HINTS["one place"])

    def _too_much(self, case, seen):
        """Return a verdict if there is another shuffle, or more in it than must."""
        if seen["stages"] != 2:
            found = (
                f"The result is right. It took {seen['stages']} stages; 2 are enough."
            )
            return self._fail(found, HINTS["stages"])
        given = [len(part) for part in case["parts"]]
        needed = [len({repr(key) for key, _ in part}) for part in case["parts"]]
        sent = seen["records"]
        if any(count > most for count, most in zip(sent, needed, strict=True)):
            lines = [f"{'partition':>9}  {'pairs':>6}  {'keys':>6}  sent"]
            for number, row in enumerate(zip(given, needed, sent, strict=True)):
                mark = "  ← more than its keys" if row[2] > row[1] else ""
                lines.append(f"{number:>9}  {row[0]:>6}  {row[1]:>6}  {row[2]}{mark}")
            return self._fail("\n".join(lines), hint_for_records(given, sent))
        pieces = len(given) * case["partitions"] * _PIECE_BYTES
        allowed = sum(needed) * _RECORD_BYTES + pieces
        if seen["bytes"] > allowed and case["function"] == "the total":
            found = (
                f"{sum(sent)} records were sent, one for each key of a partition, with "
                f"{seen['bytes']:,} bytes; {allowed:,} are more than enough."
            )
            return self._fail(found, HINTS["bytes"])
        return None


class JoinedInPlace(ReducedByKey):
    """The result joins with others that are placed the same way, without a shuffle."""

    def _wrong(self, case, seen):
        wrong = super()._wrong(case, seen)
        if wrong:
            return wrong
        reduced = reduced_pairs(case["parts"], FUNCTIONS[case["function"]])
        expected = joined_pairs([list(reduced.items())], case["others"])
        yours = sorted(map(repr, value_of(seen["joined"])))
        wanted = sorted(map(repr, expected))
        if yours != wanted:
            missing = [row for row in wanted if row not in yours]
            found = (
                f"expected  {len(wanted)} pairs\nyours     {len(yours)} pairs\n"
                f"The join does not find {missing[0] if missing else 'them'}."
            )
            return self._fail(found, HINTS["lies"])
        if seen["further_shuffles"]:
            found = (
                f"A join with an RDD that is partitioned in the same way has "
                f"{seen['further_shuffles']} more shuffle; it needs none."
            )
            key = "another function" if seen["partitioner"] else "partitioner"
            return self._fail(found, HINTS[key])
        return None


def _shares(case, key):
    """Return a key's values in each partition that has any."""
    shares = [[v for k, v in part if repr(k) == key] for part in case["parts"]]
    return [own for own in shares if own]


def _if_true(shares, function):
    """Return what becomes of a key's values where a false one counts as none."""
    parts = [reduce(lambda a, b: function(a, b) if a else b, own) for own in shares]
    return reduce(lambda a, b: function(a, b) if a else b, parts, None)


def _kind_of_double(shares, wanted, found, case):
    """Return how a key came to stand in one partition several times."""
    yours = Counter(repr(value) for _, value in found)
    made = Counter(repr(reduce(FUNCTIONS[case["function"]], own)) for own in shares)
    sent = Counter(repr(value) for own in shares for value in own)
    if yours in (made, sent):
        return "not merged"
    return "on the way" if repr(wanted) in yours else "runs"


def _listed(shown):
    return [] if shown is None else [shown]

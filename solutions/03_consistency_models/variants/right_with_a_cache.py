"""Leaves the memory to functools, and is quick in step 1 already."""

from functools import cache

POINTS = 10.0
HINT = ""


def linearizable(operations):
    return fast_linearizable(operations)


def fast_linearizable(operations):
    operations = [
        one
        for one in operations
        if one.outcome == "ok" or (one.outcome, one.op) == ("unknown", "write")
    ]

    @cache
    def possible(left, value):
        answered = [n for n in left if operations[n].end is not None]
        if not answered:
            return True
        first = min(operations[n].end for n in answered)
        return any(
            possible(
                left - {n},
                operations[n].value if operations[n].op == "write" else value,
            )
            for n in left
            if operations[n].start <= first
            and (operations[n].op == "write" or operations[n].result == value)
        )

    return possible(frozenset(range(len(operations))), None)


answers = {name: ("", "", "") for name in EIGHT_HISTORIES}
answers["A"] = ("linearizable", "b c a d e", "")
answers["B"] = ("linearizable", "a c b d e", "")
answers["C"] = ("sequential", "a c b d", "a b c")
answers["D"] = ("sequential", "a d b c e", "a b c d")
answers["E"] = ("causal", {3: "b d a f", 2: "a c b e"}, "a b c d e f")
answers["F"] = ("causal", {0: "a c b e", 1: "b d a f"}, "a b c d")
answers["G"] = ("eventual", "", "e d c b a")
answers["H"] = ("none", "", "a b c e")

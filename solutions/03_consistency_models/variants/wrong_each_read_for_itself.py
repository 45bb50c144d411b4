"""Looks at every read alone: may it return this?"""

POINTS = 6.0
HINT = "Each read for itself may return this"


def linearizable(operations):
    writes = [one for one in operations if one.op == "write"]
    for read in operations:
        if read.op == "read":
            past = [one for one in writes if one.end < read.start]
            if read.result is None and past:
                return False
            if read.result is not None and not any(
                one.value == read.result
                and one.start <= read.end
                and not any(one.end < other.start for other in past)
                for one in writes
            ):
                return False
    return True

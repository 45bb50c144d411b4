"""Whether a register could have given a history: by trying, one key after another."""

from functools import cache

from distlab.agree import CasRegister, check_linearizable


def linearizable(history):
    """Return whether some order of the operations explains every answer in time.

    distlab's own checker has to find the same.
    """
    keys = {operation.key for operation in history}
    found = all(_explains([each for each in history if each.key == k]) for k in keys)
    verdict = check_linearizable(history, CasRegister())
    assert (verdict.ok, verdict.violated) == (found, not found), verdict
    return found


def _explains(operations):
    todo = [o for o in operations if o.outcome != "failed"]
    todo = [o for o in todo if not (o.op == "read" and o.outcome == "unknown")]
    ends = [float("inf") if o.end is None else o.end for o in todo]
    answered = frozenset(i for i, o in enumerate(todo) if o.outcome == "ok")

    @cache
    def search(left, value):
        if not left & answered:
            return True
        first_end = min(ends[i] for i in left)
        for i in left:
            if todo[i].start <= first_end:
                fits, after = _step(todo[i], value)
                if fits and search(left - {i}, after):
                    return True
        return False

    return search(frozenset(range(len(todo))), None)


def _step(operation, value):
    if operation.op == "read":
        return operation.result == value, value
    if operation.op == "write":
        return True, operation.value
    old, new = operation.value
    done = value == old
    fits = operation.outcome == "unknown" or operation.result == done
    return fits, new if done else value

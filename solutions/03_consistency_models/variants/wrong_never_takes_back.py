"""Takes the first that fits, and never another one."""

POINTS = 6.0
HINT = "take it back and try another one"


def linearizable(operations):
    left, value = list(operations), None
    while left:
        first_end = min(one.end for one in left)
        for one in left:
            if one.start <= first_end and (one.op == "write" or one.result == value):
                break
        else:
            return False
        left.remove(one)
        value = one.value if one.op == "write" else value
    return True

"""Takes operations out of the list that it was given."""

POINTS = 6.0
HINT = "It is the caller's"


def linearizable(operations):
    def search(value):
        if not operations:
            return True
        first_end = min(one.end for one in operations)
        for one in list(operations):
            fits = one.op == "write" or one.result == value
            if one.start <= first_end and fits:
                operations.remove(one)
                if search(one.value if one.op == "write" else value):
                    return True
                operations.append(one)
        return False

    return search(None)

"""In a rank: a call of the learner's function, or what keeps it from being one.

A function that cannot be called as it is, or is a generator, fails before any of its
lines has run, so there is no line to name.
"""

import inspect

__all__ = ["called"]

_MOST_LETTERS = 200


def called(function, *args):
    """Call a learner's function; return what it returns.

    Raises: TypeError if it does not take these arguments, or made a generator.
    """
    name = getattr(function, "__name__", "your function")
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        signature = None  # some that are compiled have none
    if signature is not None:
        try:
            signature.bind(*args)
        except TypeError as error:
            shown = f"{name}{signature}"[:_MOST_LETTERS]
            raise TypeError(
                f"{shown} is called with {len(args)} arguments, and does not take "
                f"that: {error}"
            ) from None
    returned = function(*args)
    if inspect.isgenerator(returned):
        raise TypeError(
            f"{name} made a generator, since there is a yield in it, and none of its "
            "lines has run. Where it says yield, write return"
        )
    return returned

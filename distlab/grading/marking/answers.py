"""What a kernel answers when it is asked for things: believed as far as it is bytes."""

import json

from distlab.grading.marking.missing import why_missing
from distlab.grading.marking.running import Lost

__all__ = ["answered"]

_MOST_TEXT = 2 * 10**6


def answered(reply: dict, names: list[str], cells: list) -> tuple[dict, dict]:
    """Return name -> what is packed under it, in base64, and the kernel's cells.

    cells: the notebook's, which tell why one of the names may be missing.

    Raises: Lost if one of the names stands for nothing that can be judged.
    """
    try:
        told = json.loads(reply["user_expressions"]["asked"]["data"]["text/plain"])
        things = {name: told["things"][name] for name in names}
        packed = {name: thing.get("packed") for name, thing in things.items()}
    except Exception:  # a kernel can be made to answer anything
        raise Lost("its kernel did not say what is to be judged") from None
    for name, thing in things.items():
        if thing.get("missing"):
            raise Lost(why_missing(name, cells))
        if not isinstance(packed[name], str):
            why = " ".join(str(thing.get("why", f"`{name}` is missing")).split())
            raise Lost(why[:1000].rstrip("."))
    return packed, _cells(told.get("cells"))


def _cells(told):
    """Return the cells as `distlab.cells` has them; none if they are something else."""
    if not isinstance(told, dict) or len(json.dumps(told)) > _MOST_TEXT:
        return {}
    cells = {name: cell for name, cell in told.items() if _is_cell(cell)}
    return {name: (" ".join(cell[0].split()), cell[1]) for name, cell in cells.items()}


def _is_cell(told):
    return (
        isinstance(told, list)
        and [type(part) for part in told] == [str, list]
        and all(isinstance(line, str) for line in told[1])
    )

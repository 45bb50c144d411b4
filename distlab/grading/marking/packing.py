"""In the kernel: what a grade cell asks for, as plain text.

Whatever a submission does to this, it only changes what it hands in.
"""

import base64
import json
import os
import sys

import cloudpickle

from distlab.calls.travel import pack, pack_functions
from distlab.cells import cells
from distlab.errors import CannotTravel

__all__ = ["Plain", "asked"]

_MOST_BYTES = 2**23
_MOST_CELLS = 200


class Plain(str):
    """A text that is shown without quotes, and so arrives as it is."""

    def __repr__(self):
        return str(self)


def asked(names: list[str], namespace: dict) -> Plain:
    """Return, as JSON, each name's thing packed, or why there is none.

    {"things": {name: {"packed": base64} or {"missing": true} or {"why": sentence}},
    "cells": what `distlab.cells.cells` tells}
    """
    _take_own_modules_along()
    things = {name: _packed(name, namespace) for name in names}
    recent = dict(list(cells().items())[-_MOST_CELLS:])
    return Plain(json.dumps({"things": things, "cells": recent}))


def _take_own_modules_along():
    """Have what modules beside the notebook define travel as if cells did."""
    here = os.path.join(os.getcwd(), "")
    for module in list(sys.modules.values()):
        path = getattr(module, "__file__", None)
        if isinstance(path, str) and os.path.abspath(path).startswith(here):
            cloudpickle.register_pickle_by_value(module)


def _packed(name, namespace):
    if name not in namespace:
        return {"missing": True}
    thing = namespace[name]
    try:
        try:
            data = pack(thing)
        except CannotTravel:
            pack_functions([thing], "a rank")  # which blames better, if it is one
            raise
    except CannotTravel as error:
        return {"why": str(error)}
    if len(data) > _MOST_BYTES:
        return {"why": f"`{name}` is {len(data)} bytes large, and {_MOST_BYTES} fit."}
    return {"packed": base64.b64encode(data).decode()}

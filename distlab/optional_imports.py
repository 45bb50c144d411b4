"""Optional imports: the extras that bring packages, and a costly one left out."""

import re
import sys
from importlib import metadata

__all__ = ["extra_of", "leave_out_grammars"]


def extra_of(module: str) -> str | None:
    """Return the extra of distlab that brings a module, such as "lab"; else None."""
    package = module.partition(".")[0].lower().replace("_", "-")
    try:
        lines = metadata.requires("distlab") or []
    except metadata.PackageNotFoundError:  # run from its folder, not installed
        return None
    for line in lines:
        found = re.match(rf"{package}\b[^-].*extra == ['\"](\w+)", line)
        if found:
            return found[1]
    return None


def leave_out_grammars() -> None:
    """Keep jsonschema from compiling 39 grammars of addresses, for more than a second.

    It does so where it is imported, and nbformat imports it. The schema of a notebook
    has no address to check. Call it before either is imported.
    """
    sys.modules.setdefault("rfc3987_syntax", None)

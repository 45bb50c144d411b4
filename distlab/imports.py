"""Imports that other packages make, and that nobody here needs."""

import sys

__all__ = ["leave_out_grammars"]


def leave_out_grammars() -> None:
    """Keep jsonschema from preparing 39 grammars of addresses, for more than a second.

    It does so where it is imported, and nbformat imports it. The schema of a notebook
    has no address to check. Call it before either is imported.
    """
    sys.modules.setdefault("rfc3987_syntax", None)

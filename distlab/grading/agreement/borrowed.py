"""Whether packed functions bring the library's own code with them.

Code is known by its instructions: it may have another name or come from another file.
"""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import CodeType

__all__ = ["borrows"]

_LIBRARY = Path(__file__).resolve().parents[2]
_LEAST_BYTES = 240  # what is shorter may well be written alike


def borrows(packed: bytes) -> bool:
    """Whether functions of `distlab.agree` or of these checks are in it."""
    return any(code in packed for code in _instructions())


@cache
def _instructions():
    found = set()
    for folder in ("agree", "grading/agreement"):
        for path in (_LIBRARY / folder).rglob("*.py"):
            found |= set(_long(compile(path.read_text(), str(path), "exec")))
    return found


def _long(code: CodeType) -> Iterator[bytes]:
    """Yield the instructions of the functions in some code."""
    for part in code.co_consts:
        if isinstance(part, CodeType):
            if len(part.co_code) >= _LEAST_BYTES and part.co_name != "<module>":
                yield part.co_code
            yield from _long(part)

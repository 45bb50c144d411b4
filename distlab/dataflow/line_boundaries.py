"""Boundaries of lines, for both engines: any byte range of a file as whole lines.

    file  │the cat sat⏎on the│ mat⏎the end⏎│
          └──── 0 to 18 ─────┴── 18 to 31 ─┘       a line belongs where it begins:
           the cat sat, on the mat   the end       "on the mat" is the first one's

So no line is lost or read twice, wherever the cuts fall, and no file has to be read to
be cut. A line ends with \\n, \\r or \\r\\n; the last one may lack it. Invalid UTF-8
becomes U+FFFD, and a byte order mark is not part of the first line.
"""

import re
from collections.abc import Iterator
from typing import BinaryIO

from distlab.units import MiB

__all__ = ["blocks_of", "line_number", "lines_in", "offsets_in"]

_LONGEST = 2**63
_READ_BYTES, _LOOK_BYTES = MiB, 2**12
_END = re.compile(rb"\r\n|\r|\n")
_MARK = b"\xef\xbb\xbf"


def blocks_of(
    file: BinaryIO, start: int, end: int, longest: int = _LONGEST
) -> Iterator[tuple[int, bytes]]:
    """Yield (offset, bytes) of the lines that begin at `start` to before `end`.

    A block is about a MiB, or `longest` // 4 bytes if that is less, of whole lines.

    Raises: ValueError for a line of more than `longest` bytes.
    """
    at, end = _line_after(file, start), _line_after(file, end)
    file.seek(at)
    rest, size = b"", min(_READ_BYTES, longest // 4)
    while at + len(rest) < end:
        block = rest + file.read(min(size, end - at - len(rest)))
        whole = _whole_lines(block) if at + len(block) < end else len(block)
        if whole:
            yield at, block[:whole]
        at, rest = at + whole, block[whole:]
        if len(rest) > longest:
            raise ValueError(f"a line of more than {longest} bytes")


def _whole_lines(block):
    """Return the number of bytes of a block up to its last certain end of line."""
    return block.rfind(b"\n") + 1 or block.rfind(b"\r", 0, -1) + 1


def _line_after(file, at):
    """Return the offset of the first line that begins at offset `at` or later."""
    if at == 0:
        return 0
    at -= 1
    file.seek(at)
    while block := file.read(_LOOK_BYTES):
        found = _END.search(block)
        if found is not None:
            follows = found[0] == b"\r" and found.end() == len(block)
            more = bool(follows and file.read(1) == b"\n")
            return at + found.end() + more
        at += len(block)
    return at


def lines_in(offset: int, block: bytes) -> list[str]:
    """Return the lines of the block at this offset, without their ends."""
    if offset == 0:
        block = block.removeprefix(_MARK)
    if b"\r" in block:
        block = _END.sub(b"\n", block)
    lines = block.decode("utf-8", errors="replace").split("\n")
    if not lines[-1]:
        lines.pop()
    return lines


def offsets_in(offset: int, block: bytes) -> list[int]:
    """Return the offset in the file of each line of the block."""
    ends = [offset + end.end() for end in _END.finditer(block)]
    return [offset, *(at for at in ends if at < offset + len(block))]


def line_number(path: str, offset: int) -> int:
    """Return the number of the line that begins at `offset`, counted from 1."""
    with open(path, "rb") as file:
        blocks = blocks_of(file, 0, offset)
        return 1 + sum(len(offsets_in(*block)) for block in blocks)

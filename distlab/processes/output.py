"""Output of one process, read without waiting, in whole lines.

Stacks are the main thread's frames, parsed from faulthandler's dump.
"""

import codecs
import contextlib
import fcntl
import os
import re
import time
from collections.abc import Mapping
from pathlib import Path

from distlab.processes.child import STACKS_SIGNAL

__all__ = ["LineReader", "Stack", "ask_for_stacks", "read_stacks"]

_PIPE_BYTES = 2**20
_MOST_AT_ONCE = 2**26
_LONGEST_LINE = 2**20


class LineReader:
    """The reading end of one process's output pipe.

    Invariant: returned text ends with a newline, so that lines of several processes
    can be shown one after another without tearing. A line of more than a million
    characters is broken.
    """

    def __init__(self, descriptor: int):
        self.descriptor = descriptor
        os.set_blocking(descriptor, False)
        if hasattr(fcntl, "F_SETPIPE_SZ"):
            try:
                fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
            except OSError:
                pass  # over the user's pipe quota: the small pipe works, only slower
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._partial = ""

    def read(self, to_the_end: bool = False) -> tuple[str, bool]:
        """Return (whole lines printed by now, True if the pipe is still open).

        One pipe's worth at most, so that a process that prints without end cannot keep
        its owner here; with `to_the_end` everything written before the call.
        """
        pieces, count, most = [], 0, _MOST_AT_ONCE if to_the_end else _PIPE_BYTES
        still_open = True
        while count < most:
            try:
                piece = os.read(self.descriptor, _PIPE_BYTES)
            except BlockingIOError:
                break
            if not piece:
                still_open = False
                break
            pieces.append(piece)
            count += len(piece)
        text = self._partial + self._decoder.decode(b"".join(pieces))
        end = text.rfind("\n") + 1
        self._partial = text[end:]
        if len(self._partial) > _LONGEST_LINE:
            return text[:end] + self.finish(), still_open
        return text[:end], still_open

    def finish(self) -> str:
        """Return the rest of an unfinished line, with a newline; "" if none."""
        rest = self._partial + self._decoder.decode(b"", final=True)
        self._partial = ""
        self._decoder.reset()
        return rest + "\n" if rest else ""

    def close(self) -> None:
        """Close the pipe."""
        os.close(self.descriptor)


_MOST_BYTES = 2**20

Stack = list[tuple[str, int, str]]


def read_stacks(files: Mapping[int, int], wait_s: float) -> dict[int, Stack]:
    """Return each process's stack once all have written theirs, or the wait is over.

    files: process index -> descriptor of the file that its faulthandler writes to.
    """
    deadline = time.monotonic() + wait_s
    texts = dict.fromkeys(files, "")
    while time.monotonic() < deadline:
        before = dict(texts)
        time.sleep(0.02)  # a dump that has not grown meanwhile is complete
        for index, file in files.items():
            written = os.pread(file, min(os.fstat(file).st_size, _MOST_BYTES), 0)
            texts[index] = written.decode(errors="replace")
        if all(texts.values()) and texts == before:
            break
    return {index: _main_thread_frames(text) for index, text in texts.items()}


def ask_for_stacks(
    processes: Mapping[int, tuple[int, str | Path]], wait_s: float
) -> dict[int, Stack]:
    """Return the stacks of processes that another one has started, as `read_stacks`.

    processes: index -> pid, and the file that its faulthandler writes to. One that is
    gone, or another user's, is left out.
    """
    files = {}
    with contextlib.ExitStack() as opened:
        for index, (pid, place) in processes.items():
            with contextlib.suppress(OSError):
                file = opened.enter_context(open(place, "r+b")).fileno()
                os.ftruncate(file, 0)
                os.kill(pid, STACKS_SIGNAL)
                files[index] = file
        return read_stacks(files, wait_s) if files else {}


def _main_thread_frames(text):
    """Parse faulthandler's dump; the main thread is its last block."""
    block = re.split(r"^(?:Current thread|Thread) .*$", text, flags=re.MULTILINE)[-1]
    line_of_frame = r'^  File "(.*)", line (\d{1,9}) in (.*)$'
    found = re.findall(line_of_frame, block, flags=re.MULTILINE)
    return [(name, int(line), function) for name, line, function in found]

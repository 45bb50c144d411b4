"""Stacks of processes: the main thread's frames, parsed from faulthandler's dump."""

import os
import re
import time
from collections.abc import Mapping

__all__ = ["Stack", "read_stacks"]

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


def _main_thread_frames(text):
    """Parse faulthandler's dump; the main thread is its last block."""
    block = re.split(r"^(?:Current thread|Thread) .*$", text, flags=re.MULTILINE)[-1]
    line_of_frame = r'^  File "(.*)", line (\d{1,9}) in (.*)$'
    found = re.findall(line_of_frame, block, flags=re.MULTILINE)
    return [(name, int(line), function) for name, line, function in found]

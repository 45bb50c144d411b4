"""A lesson fits into the memory of a free notebook service, with all its processes.

    python -m pytest -n 0 -s -m soak tests/lessons/test_memory.py

prints the peak of each lesson, its code cell, and who held how much.
"""

import re
import threading
from collections import Counter
from pathlib import Path

import psutil
import pytest

from distlab.commands.running.execute import execute, hushed
from distlab.commands.running.lesson_process import Settings

LESSONS = sorted((Path(__file__).parents[2] / "lessons").glob("*.ipynb"))
KB = 1024 / 1e6  # in MB

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1200)]


def measured_mb():
    """Return what the kernel and all that it started hold: who, and how many MB.

    It is PSS, but the files of a program count once and whole, so that processes beside
    the lesson that have the same files open make no difference.
    """
    held, files = Counter(), Counter()
    for process in psutil.Process().children(recursive=True):
        try:
            words, program = " ".join(process.cmdline()), process.exe()
            rollup = Path(f"/proc/{process.pid}/smaps_rollup").read_text()
            status = Path(f"/proc/{process.pid}/status").read_text()
        except (psutil.Error, OSError):
            continue  # it has ended
        who = "server and ranks" if "processes.server" in words else process.name()
        who = "kernel" if "ipykernel_launcher" in words else who
        own = re.findall(r"^Pss_(?:Anon|Shmem): +(\d+)", rollup, re.M)
        mapped = re.findall(r"^RssFile:\s+(\d+)", status, re.M)
        held[who] += KB * sum(map(int, own))
        files[program] = max(files[program], KB * sum(map(int, mapped)))
    return held + Counter({"files": files.total()})


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda path: path.stem)
def test_a_lesson_takes_at_most_1200_megabytes_in_all(lesson, tmp_path):
    over, samples, ended = threading.Event(), [], []

    def sample():
        while not over.wait(0.1):
            held = measured_mb()
            samples.append((held.total(), len(ended) + 1, held))

    sampler = threading.Thread(target=sample)
    sampler.start()
    try:
        with hushed():
            ran = execute(
                lesson, tmp_path, Settings(pages=False), lambda: ended.append(1)
            )
    finally:
        over.set()
        sampler.join()
    assert not ran.failure
    peak_mb, cell, held = max(samples, key=lambda each: each[:2])
    described = ", ".join(f"{who} {mb:.0f}" for who, mb in held.most_common())
    at = f"in code cell {cell} of {ran.total}, {ran.seconds:.0f} s"
    print(f"\n{lesson.stem}: {peak_mb:.0f} MB {at}: {described}")
    assert 100 < peak_mb <= 1200, described

"""Temporary folders of processes that were killed are removed; others stay."""

import os
import signal
import subprocess
import sys

import pytest

from distlab.processes.folders import new_folder, remove_orphaned

CODE = """
from distlab.processes.folders import new_folder
print(new_folder(in_memory=True), flush=True)
input()
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc")
def test_only_a_dead_process_loses_its_folder():
    how = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    other, mine = subprocess.Popen([sys.executable, "-c", CODE], **how), ""
    try:
        mine, theirs = new_folder(in_memory=True), other.stdout.readline().strip()
        remove_orphaned()
        assert os.path.isdir(mine) and os.path.isdir(theirs)
        other.send_signal(signal.SIGKILL)
        other.wait()
        remove_orphaned()
        assert os.path.isdir(mine) and not os.path.exists(theirs)
    finally:
        other.kill()
        other.communicate()
        os.rmdir(mine)

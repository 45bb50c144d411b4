"""What the tests of real stores share: processes of their own, waits for conditions."""

import os
import subprocess
import sys
import textwrap
import time

import psutil

PREFACE = """
import os, signal, sys, threading, time, psutil
from distlab import Call, EngineFailed, History
from distlab.network import Client
from distlab.engines import etcd, postgres, redis

def family():
    server = psutil.Process().children()
    return [p for p in psutil.Process().children(recursive=True) if p not in server]

def folders():
    return os.listdir(os.environ["TMPDIR"])
"""


def started(folder, code):
    """Start a process whose folder for temporary files is its own."""
    return subprocess.Popen(
        [sys.executable, "-c", PREFACE + textwrap.dedent(code)],
        env=os.environ | {"TMPDIR": str(folder)},
        start_new_session=True,  # as a kernel, whose whole group Jupyter interrupts
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finished(process, folder):
    """Wait for a process's end; check that it said only "done", and left no file."""
    out, err = process.communicate(timeout=150)
    assert (out, err) == ("done\n", ""), err
    assert os.listdir(folder) == []


def wait_until(true, limit_s=60):
    """Wait for something that is to come, however slow the machine."""
    deadline = time.monotonic() + limit_s
    while not true():
        assert time.monotonic() < deadline, "it did not come"
        time.sleep(0.01)


def is_gone(process):
    """Return whether a process has ended."""
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def outcomes(history):
    """Return the outcomes of a history's operations, in order."""
    return [operation.outcome for operation in history]

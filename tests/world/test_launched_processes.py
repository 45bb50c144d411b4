"""Processes that another program starts: as well watched as those of the server."""

import json
import os
import signal
import subprocess
import sys

import psutil
import pytest
from stores import is_gone, wait_until

from distlab.errors import EngineFailed
from distlab.launch.machine import PRELOAD
from distlab.processes import Ended, LaunchedProcesses, Lines

STARTS_THREE = 'for i in 0 1 2; do NUMBER=$i "$@" & done; wait'


@pytest.fixture
def launched():
    """Yield three processes of a shell; each becomes the command that it is sent."""
    launched = launched_by(STARTS_THREE)
    yield launched
    launched.stop()


def launched_by(script):
    return LaunchedProcesses(
        3,
        "distlab.processes.externally_launched_child:host",
        host=lambda folder: ["bash", "-c", script, "bash"],
        number="NUMBER",
        environment=os.environ,
        preload=PRELOAD,
    )


def become(launched, index, script):
    launched.send(index, json.dumps(["bash", "-c", script]).encode())


def what_happens(launched, until):
    """Return all that `poll` reports, up to the moment that `until` speaks of."""
    happened = []
    while not until(happened):
        happened += launched.poll(0.1)
    return happened


def ends(happened):
    return {what.index: what.status for what in happened if isinstance(what, Ended)}


def test_each_launched_process_is_the_one_it_was_started_as(launched):
    for index in range(3):
        become(launched, index, f"echo $NUMBER is {index}")
    happened = what_happens(launched, lambda happened: len(ends(happened)) == 3)
    lines = {what.index: what.text for what in happened if isinstance(what, Lines)}
    assert lines == {index: f"{index} is {index}\n" for index in range(3)}


def test_a_launched_process_that_fails_is_reported_and_the_others_go_on(launched):
    become(launched, 0, "exit 3")
    become(launched, 1, "kill -SEGV $$")
    happened = what_happens(launched, lambda happened: len(ends(happened)) == 2)
    assert ends(happened) == {0: 3, 1: -signal.SIGSEGV}
    become(launched, 2, "echo still here")
    happened = what_happens(launched, ends)
    assert happened == [Lines(2, "still here\n"), Ended(2, 0)]


def test_a_launched_process_whose_first_process_is_killed_is_gone_with_it(launched):
    become(launched, 1, "sleep 1000")
    while launched.pids[1] is None:
        launched.poll(0.1)
    second = psutil.Process(launched.pids[1])
    second.parent().kill()
    assert ends(what_happens(launched, ends)) == {1: -signal.SIGKILL}
    wait_until(lambda: is_gone(second))


@pytest.mark.parametrize(
    ("script", "how"),
    [("printf 'no room here'; exit 5", "exit status 5"), ("kill -9 $$", "SIGKILL")],
)
def test_a_host_that_ends_early_is_told_with_its_last_words(script, how):
    launched = launched_by(script)
    with pytest.raises(EngineFailed, match=f"bash ended before.*{how}") as raised:
        what_happens(launched, lambda happened: False)
    launched.stop()
    assert ("It said: no room here" in str(raised.value)) == ("no room" in script)


def test_a_host_that_is_killed_takes_its_launched_processes_along():
    launched = launched_by(STARTS_THREE)
    while None in launched.pids[:3]:
        launched.poll(0.1)
    seconds = [psutil.Process(pid) for pid in launched.pids[:3]]
    seconds[0].parent().parent().kill()
    with pytest.raises(EngineFailed, match="SIGKILL"):
        what_happens(launched, lambda happened: False)
    launched.stop()
    wait_until(lambda: all(map(is_gone, seconds)))
    assert not os.path.exists(launched.folder)


OWNER = f"""
STARTS_THREE = {STARTS_THREE!r}
import gc, os, sys, time
import psutil
from distlab.processes import LaunchedProcesses
launched = LaunchedProcesses(
    3,
    "distlab.processes.externally_launched_child:host",
    host=lambda folder: ["bash", "-c", STARTS_THREE, "bash"],
    number="NUMBER",
    environment=os.environ,
)
for index in range(3):
    launched.send(index, b'["sleep", "1000"]')
while None in launched.pids[:3]:
    launched.poll(0.1)
if "forget" in sys.argv:
    print(launched.folder)
    del launched
    gc.collect()
    time.sleep(1000)
(server,) = psutil.Process().children()
print(*(process.pid for process in server.children(recursive=True)))
server.kill()
launched.stop()
print(os.path.exists(launched.folder))
"""


def test_when_the_process_server_is_killed_its_host_and_launched_processes_die_too():
    code = [sys.executable, "-c", OWNER]
    done = subprocess.run(code, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    *pids, folder_exists = done.stdout.split()
    assert len(pids) == 7, "the host, and two processes for each launched process"
    assert folder_exists == "False"
    wait_until(lambda: not any(psutil.pid_exists(int(pid)) for pid in pids))


def test_launched_processes_that_their_owner_forgets_end_with_their_folder():
    code = [sys.executable, "-c", OWNER, "forget"]
    owner = subprocess.Popen(code, stdout=subprocess.PIPE, text=True)
    folder = owner.stdout.readline().strip()
    assert folder
    wait_until(lambda: not os.path.exists(folder))
    assert len(psutil.Process(owner.pid).children(recursive=True)) == 1, "the server"
    owner.kill()
    owner.communicate()

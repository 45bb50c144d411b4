"""What a sandbox holds back: memory anywhere, mounts, left processes, bytecode."""

import compileall

import pytest

import distlab.collectives.two_trees as withheld
from distlab.checks import start_here
from distlab.checks.kit.grading import judge
from distlab.sandbox import Named, Sandbox, sandbox
from distlab.sandbox.limits import ResourceLimits
from distlab.sandbox.sandbox import NotebookLost
from distlab.units import MiB

pytestmark = pytest.mark.timeout(100)

C = "import ctypes, os, time\nlibc = ctypes.CDLL(None, use_errno=True)\n"
FILES = """for n in range(12):
    {}
    kept.append(file)
    for _ in range(50):
        file.write(bytes(2**20))
time.sleep(20)"""
MOUNT = "print(libc.mount(b'tmpfs', b'{}', b'tmpfs', 0, b'size=4g'))\ntime.sleep({})"
OVER = "it used more than 0.469 GiB of memory"


@pytest.fixture(scope="module")
def box():
    with pytest.MonkeyPatch.context() as patch:
        limits = ResourceLimits(memory_bytes=480 * MiB)
        patch.setattr(sandbox, "ResourceLimits", lambda: limits)
        compileall.compile_file(withheld.__file__, quiet=True)
        with Sandbox(withheld=[withheld.__name__]) as box:
            box.submission().close()  # from now on it is there
            yield box


@pytest.fixture
def notebook(box):
    notebook = box.submission()
    yield notebook
    notebook.close()


def printed(outputs):
    return "".join(output.get("text", "") for output in outputs)


@pytest.mark.parametrize(
    ("cell", "why"),
    [
        (FILES.format("file = open(os.memfd_create('x'), 'wb', 0)"), OVER),
        (FILES.format("file = open(f'/tmp/{n}', 'wb', 0)"), OVER),
        (
            MOUNT.format("/tmp", 0)
            + "\n"
            + FILES.format("file = open(f'/tmp/{n}', 'wb')"),
            OVER,
        ),
        (
            "os.mkdir('/tmp/x')\n" + MOUNT.format("/tmp/x", 20),
            "it mounted a file system",
        ),
        (MOUNT.format("/usr", 20), "it mounted a file system"),
    ],
    ids=["memfds", "folder", "own tmpfs", "mount", "mount over"],
)
def test_memory_in_files_counts_and_a_mount_ends_the_notebook(notebook, cell, why):
    with pytest.raises(NotebookLost, match=why):
        notebook.run(f"{C}kept = []\n{cell}", 1, 60)


def test_nothing_can_be_unmounted_and_no_system_v_memory_made(notebook):
    asked = "print([libc.umount2(p, 2) for p in (b'/tmp', b'/dev/shm', b'/usr')])\n"
    asked += "print(libc.shmget(0, 4096, 0o1600))"
    assert printed(notebook.run(C + asked, 1, 60)) == "[-1, -1, -1]\n-1\n"


def test_a_withheld_module_is_there_in_no_form(notebook):
    asked = """import glob, os, distlab.collectives as c
found = glob.glob(os.path.dirname(c.__file__) + "/**/two_trees*", recursive=True)
stubs = [b"NotImplementedError" in open(file, "rb").read() for file in found]
print(len(found) > 1, all(stubs))"""
    assert printed(notebook.run(asked, 1, 60)) == "True True\n"


def test_what_a_cell_leaves_running_is_stopped_before_a_check(notebook):
    notebook.run(
        "import os, subprocess, time\n"
        "left = subprocess.Popen(['sleep', '1000'])\n"
        "if not (child := os.fork()):\n    os.setsid()\n"
        "    os.fork()\n    time.sleep(1000)\n"
        "def alone(comm, speak):\n    speak()",
        1,
        60,
    )
    with notebook.checks():
        verdict = judge(start_here.speak_in_order, Named("alone"), (1,))
    assert verdict.outcome == "pass", verdict
    asked = "print(left.poll() is not None, os.path.exists(f'/proc/{child}'))"
    assert printed(notebook.run(asked, 2, 60)) == "True False\n"

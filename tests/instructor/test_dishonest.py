"""What grading defends against, all of it, in one run: no attack gets a point.

Each submission has a right first step and attacks with the cell of the second, or
attacks in its first cell; its neighbor `honest` is graded last and gets everything.
"""

import re

import pytest
from courses import ONE, STEM, TWO, SmallCourse
from soaks import nightly

pytestmark = pytest.mark.timeout(400)

SEES = """import os, sys
found = []
for root in {roots!r}:
    for folder, inner, names in os.walk(root):
        inner[:] = [name for name in inner if name not in ("site-packages", "lib")]
        kinds = ".ipynb", "gradebook.db", "students.csv", "nbgrader_config.py"
        found += [name for name in names if name.endswith(kinds)]
secrets = [name for name in os.environ if "SECRET" in name or "PATIENCE" in name]
needed = sys.prefix + os.pathsep + __import__("distlab").__file__
own = [n for n in os.listdir("/tmp") if "/tmp/" + n + "/" not in needed]
print("SEEN", found, secrets, own)"""
FAKE = "def all_reduce(comm, tensor, ring):\n    {}"
NOTHING = FAKE.format("pass")

ATTACKS = {
    # printing or returning a fake result
    "prints": NOTHING + "\nprint('4.0'); 4.0",
    "displays": NOTHING + "\nfrom IPython.display import HTML, display\n"
    "display({'text/plain': '4.0'}, raw=True)\ndisplay(HTML('<script>1</script>'))",
    "shadows_grade": NOTHING + "\ngrade = lambda *a: 4.0\nhint = print",
    "returns_truth": FAKE.format("return True"),
    # patching what runs in its own processes
    "patches_probe": NOTHING + "\nimport distlab.checks.ring_all_reduce as r\n"
    "for name in list(vars(r)):\n"
    "    if name.startswith('_') and callable(getattr(r, name)):\n"
    "        setattr(r, name, lambda comm, f, x, *a: ([sum(x)] * len(x), 0))",
    "patches_code": NOTHING + "\nimport distlab.checks.kit.ranks as k\n"
    "import distlab.launch.rank as rank\n"
    "rank._outcome.__code__ = (lambda comm, arrivals, data: b'').__code__\n"
    "k.called = lambda *a: None",
    "patches_compare": NOTHING + "\nimport builtins, torch\n"
    "torch.Tensor.tolist = lambda self: Same()\nclass Same(list):\n"
    "    def __eq__(self, other): return True\n"
    "    def __ne__(self, other): return False",
    "patches_dumps": NOTHING + "\nimport json, pickle\n"
    'json.dumps = lambda *a, **k: \'{"outcome": "returned", "threads": 1}\'',
    "unpickles": FAKE.format(
        "return type('X', (), {'__reduce__': lambda s: (exec, ('print(1)',))})()"
    ),
    # answers without messages
    "shared_memory": "import mmap, os, struct\nroom = mmap.mmap(-1, 1 << 20)\n"
    + FAKE.format(
        "import time\n"
        "    for i, x in enumerate(tensor.tolist()):\n"
        "        struct.pack_into('d', room, 8 * (64 * comm.rank + i), x)\n"
        "    time.sleep(0.2)\n"
        "    for i in range(len(tensor)):\n"
        "        tensor[i] = sum(struct.unpack_from('d', room, 8 * (64 * r + i))[0]\n"
        "                        for r in range(comm.world_size))"
    ),
    "files": FAKE.format(
        "import json, pathlib, time\n"
        "    here = [pathlib.Path(p) for p in ('/tmp', '/dev/shm', '/tmp/home')]\n"
        "    for p in here:\n"
        "        mine = json.dumps(tensor.tolist())\n"
        "        try: (p / f'{comm.rank}.json').write_text(mine)\n"
        "        except OSError: pass\n"
        "    time.sleep(0.2)\n"
        "    for p in here:\n"
        "        try:\n"
        "            rows = [json.loads((p / f'{r}.json').read_text())\n"
        "                    for r in range(comm.world_size)]\n"
        "            tensor.copy_(torch.tensor(rows).sum(0))\n"
        "        except OSError: pass"
    ),
    "sockets": FAKE.format(
        "import socket\n"
        "    if comm.rank: socket.create_connection(('127.0.0.1', 40000), timeout=1)\n"
        "    else: socket.create_server(('127.0.0.1', 40000))"
    ),
    # the library's own implementation
    "imports_ring": FAKE.format(
        "from distlab.collectives import ring_all_reduce; ring_all_reduce(comm, tensor)"
    ),
    "reloads_ring": FAKE.format(
        "import importlib, sys\n"
        "    for name in [n for n in sys.modules if n.startswith('distlab.coll')]:\n"
        "        del sys.modules[name]\n"
        "    m = importlib.import_module('distlab.collectives.all_reduce')\n"
        "    importlib.reload(m).ring_all_reduce(comm, tensor)"
    ),
    "executes_ring": "import distlab, pathlib\n"
    "folder = pathlib.Path(distlab.__file__).parent / 'collectives'\n"
    "text = (folder / 'all_reduce.py').read_text()\n"
    "space = {'__name__': 'x'}; exec(text, space)\n"
    + FAKE.format("space['ring_all_reduce'](comm, tensor)"),
    "umounts_ring": "import ctypes, distlab, pathlib\n"
    "folder = pathlib.Path(distlab.__file__).parent / 'collectives'\n"
    "print(ctypes.CDLL(None).umount2(str(folder / 'all_reduce.py').encode(), 2))\n"
    + FAKE.format(
        "from distlab.collectives import ring_all_reduce; ring_all_reduce(comm, tensor)"
    ),
    "torch_all_reduce": FAKE.format(
        "import torch.distributed as dist; dist.all_reduce(tensor)"
    ),
    # loops, forks, memory, disk, output
    "loops": FAKE.format("while True: pass"),
    "forks": FAKE.format("import os\n    while True: os.fork()"),
    "forks_in_cell": "import os\nwhile True: os.fork()",
    "memory": FAKE.format("kept = [bytearray(10**8) for _ in range(100)]"),
    "memory_in_cell": "kept = [bytearray(10**8) for _ in range(100)]",
    "disk": FAKE.format("open('/tmp/x', 'wb').write(bytes(2 * 10**9))"),
    "output": NOTHING + "\nwhile True: print('x' * 10**6)",
    "output_of_ranks": FAKE.format("while True: print('x' * 10**6)"),
    "frames": FAKE.format("comm.send(torch.zeros(10**9), 1 - comm.rank)"),
    "kills": FAKE.format("import os, signal; os.kill(-1, signal.SIGKILL)"),
    "kills_in_cell": "import os, signal; os.kill(-1, 9); os.kill(os.getppid(), 9)",
    "exits": "import os; os._exit(0)",
    "lives_on": NOTHING + "\nimport os, time\nif not os.fork():\n    os.setsid()\n"
    "    if not os.fork():\n        time.sleep(3600)\n    os._exit(0)",
}


# One of each kind; the other ways, and what takes all of a machine, are nightly.
OFTEN = ("prints", "displays", "shadows_grade", "patches_code", "unpickles", "exits")
OFTEN += ("shared_memory", "imports_ring", "torch_all_reduce", "kills_in_cell")
OFTEN += ("forks_in_cell", "memory_in_cell", "sockets")


def case(name, *more):
    return (pytest.param if name in OFTEN else nightly)(name, *more)


@pytest.fixture(scope="module")
def graded(tmp_path_factory, request):
    course = SmallCourse(tmp_path_factory.mktemp("course"))
    roots = [str(course.folder), "/root", "/home", "/work", "/tmp", "/proc/1/root/root"]
    course.submit("aa_reads", one=SEES.format(roots=roots) + "\n" + ONE)
    items = [item for item in request.session.items if item.path == request.path]
    names = [
        each.callspec.params["name"] for each in items if hasattr(each, "callspec")
    ]
    for name in {*names, "displays"}:
        course.submit(name, two=ATTACKS[name])
    course.submit("zz_honest")
    text = (course.folder / "nbgrader_config.py").read_text()
    limits = "c.InSandbox.cell_timeout, c.InSandbox.step_timeout = 6, 20\n"
    (course.folder / "nbgrader_config.py").write_text(text + limits)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("A_SECRET", "1")
        patch.setenv("DISTLAB_PATIENCE", "3")  # times the limits above
        patch.setenv("DISTLAB_CHECK_SECONDS", "3")
        course.said = course.grade()
    return course


def test_nothing_of_the_instructor_or_of_others_can_be_read(graded):
    seen = re.search(r"SEEN (.*)", graded.shown("aa_reads", "one"))[1]
    assert seen == "[] ['DISTLAB_PATIENCE'] ['home']"


@pytest.mark.parametrize("name", [*map(case, ATTACKS)])
def test_an_attack_gets_no_point_and_costs_none_that_is_earned(graded, name):
    assert graded.points(name) == (3.0, 0.0), graded.shown(name, "two-check")


def test_who_is_graded_after_all_of_them_gets_everything(graded):
    assert graded.points("zz_honest") == (3.0, 4.0)
    assert graded.points("aa_reads") == (3.0, 4.0)


@pytest.mark.parametrize(
    "name, words",
    [
        case("forks", "more than 128 processes"),
        case("forks_in_cell", "more than 128 processes"),
        case("memory_in_cell", "2 GiB of memory"),
        case("loops", "was still running"),
        case("imports_ring", "is not available here"),
        case("reloads_ring", "is not available here"),
        case("shared_memory", "has to arrive through comm"),
        case("torch_all_reduce", "the algorithm is the exercise"),
    ],
)
def test_the_verdict_or_the_cell_says_what_happened(graded, name, words):
    shown = graded.shown(name, "two-check") + graded.shown(name, "two")
    assert words in " ".join(shown.split())


def test_the_notebook_has_no_script_of_a_submission(graded):
    for cell in graded.graded("displays")["cells"]:
        for output in cell.get("outputs", []):
            if not cell["metadata"].get("nbgrader", {}).get("grade"):
                assert {*output.get("data", {})} <= {"text/plain", "image/png"}
    assert STEM in graded.said or "total" in graded.said


def test_the_solution_would_have_been_right():
    assert "ring.index" in ONE and "reduce_scatter" in TWO

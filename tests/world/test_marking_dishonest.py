"""Whatever a submission tries, it gets the marks that its honest part earns.

Step one is right in all of these; step two is not, unless the test says otherwise.
"""

import json
import time

import psutil
import pytest
from courses import CHECK_TWO, Course, cell, solved
from distlab.preloads import CHECKING, KERNEL

from distlab.processes import warm_up

pytestmark = pytest.mark.timeout(400)

HONEST = {"one-check": 3.0, "two-check": 0.0}
ALL = {"one-check": 3.0, "two-check": 4.0}
NOTHING = "def ring(comm, tensor):\n    pass\n"


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    warm_up(CHECKING)
    warm_up(KERNEL)
    course = Course(tmp_path_factory.mktemp("course"), timeout=10, restarts=3)
    course.grade(solved())  # what is made once for all submissions is there by now
    return course


def with_cells(**sources):
    """Return the solved notebook with other sources in some cells."""
    notebook = solved()
    for name, source in sources.items():
        cell(notebook, name).source = source
    return notebook


PRETENDERS = {
    "another grade": "grade = lambda points, checks, **_: float(points)",
    "checks that pass": """
import distlab.grading, distlab.grading.verdict
from distlab.grading import AllReduceSums, Verdict
AllReduceSums.judge = lambda self: Verdict("pass", "all")
distlab.grading.grade = distlab.grading.verdict.grade = lambda p, c, **_: float(p)
class AllReduceSums:
    def __init__(self, *_): self.title = "all"
    def judge(self): return Verdict("pass", "all")
""",
    "builtins": """
import builtins
builtins.all = builtins.any = lambda *_: True
builtins.float = lambda *_: 4.0
builtins.range = lambda *_: []
""",
    "a torch that finds all equal": """
torch.equal = torch.allclose = lambda *_, **__: True
torch.Tensor.__eq__ = lambda *_: True
torch.testing.assert_close = lambda *_, **__: None
""",
    "hooks of IPython": """
import sys
shell = get_ipython()
shell.input_transformers_cleanup.append(lambda lines: ["4.0"])
shell.events.register("post_run_cell", lambda *_: print("4 of 4 points"))
sys.displayhook = lambda value: print(4.0)
shell.displayhook.__class__.__call__ = lambda self, value: print(4.0)
""",
    "another cell's value": "_ = Out[4] = 4.0\n4.0",
    "a printed verdict": "print('✓ 2 ranks: pass\\n\\n4 of 4 points')\n4.0",
    "numbers that are none": """
class Four(float):
    def __repr__(self): return "4.0"
    __eq__ = __le__ = __ge__ = lambda *_: True
Four(0)
""",
    "other packing": """
import pickle, cloudpickle
from distlab.calls import travel
from distlab.grading.marking import packing
class Opened:
    def __reduce__(self): return eval, ("print('opened') or (lambda *_: None)",)
opened = pickle.dumps(Opened())
travel.pack = packing.pack = lambda *_: opened
cloudpickle.CloudPickler.dump = lambda self, thing: None
""",
    "other names for what is packed": """
from distlab.grading.marking import packing
import base64, json
real = packing.asked
def asked(names, namespace):
    told = json.loads(real(names, namespace))
    told["things"] |= {"grade": told["things"][names[0]], "AllReduceSums": {}}
    told["cells"] = {json.__file__: ["Cell In[1]", ["nothing"] * 400]}
    return packing.Plain(json.dumps(told))
packing.asked = asked
""",
    "a look for what is hidden": """
import gc, sys, os
def ring(comm, tensor):
    frame = sys._getframe()
    while frame:
        for name, value in list(frame.f_locals.items()):
            if name in ("sizes", "expected", "inputs", "checks"):
                tensor[:] = torch.as_tensor(value)
        frame = frame.f_back
""",
    "an end with success": """
import os
def ring(comm, tensor):
    print("✓ all: pass"); print("4 of 4 points", flush=True)
    os._exit(0)
""",
    "an object that says yes": """
class Yes:
    __name__ = "ring"
    def __call__(self, *_): return self
    def __getattr__(self, name): return self
    __eq__ = __le__ = __ge__ = __contains__ = lambda *_: True
    __hash__ = lambda self: 0
    __reduce_ex__ = lambda self, _: (str, ("ring",))
ring = Yes()
""",
}


@pytest.mark.parametrize("name", PRETENDERS)
def test_who_pretends_gets_what_is_honest(course, name):
    graded = course.grade(with_cells(two=NOTHING + PRETENDERS[name]))
    assert graded.success, graded.log
    assert graded.steps == HONEST
    assert not graded.unclear


BREAKERS = {
    "ends the kernel": "import os\nos._exit(0)",
    "asks the kernel to end": "exit()",
    "kills itself": "import os\nos.kill(os.getpid(), 9)",
    "kills its parent": "import os\nos.kill(os.getppid(), 9)\nos.kill(1, 9)",
    "kills all": "import os\nos.kill(-1, 9)",
    "crashes": "import ctypes\nctypes.string_at(0)",
    "ends it in a thread": """
import os, threading
threading.Timer(0.2, os._exit, [0]).start()
threading.Event().wait(1)
""",
    "loops": "while True:\n    pass",
    "loops and catches": """
while True:
    try:
        while True:
            pass
    except BaseException:
        pass
""",
    "does not hear": """
import signal, time
signal.signal(signal.SIGINT, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
time.sleep(10**6)
""",
    "prints without end": "while True:\n    print('never enough' * 20)",
    "prints to the descriptor": "import os\nwhile True:\n    os.write(1, b'x' * 10**5)",
    "shows without end": """
from IPython.display import display
while True:
    display({'text/plain': 'x' * 10**5}, raw=True)
""",
    "asks a question": "answer = input('who are you?')",
    "makes noise": """
import os, sys, warnings
warnings.warn("oh"); print("oh", file=sys.stderr); os.write(2, b"oh")
""",
    "takes all memory": "hoard = []\nwhile True:\n    hoard.append(bytearray(10**8))",
    "forks without end": "import os\nwhile True:\n    os.fork()",
    "fills the disk": """
import itertools
for number in itertools.count():
    open(f"file-{number}", "wb").write(b"x" * 10**8)
""",
    "answers what no kernel answers": """
kernel = get_ipython().kernel
parent = kernel.get_parent("shell")
for kind, content in [
    ("execute_result", {"data": 4.0}),
    ("display_data", {"data": {"text/plain": ["\\ud800"]}, "metadata": []}),
    ("stream", {"name": "stderr"}),
    ("error", {}),
    ("comm_open", {}),
    ("update_display_data", {"transient": {"display_id": "x"}, "data": 1}),
    ("status", {}),
    ("clear_output", 3),
]:
    kernel.session.send(kernel.iopub_socket, kind, content, parent=parent)
""",
    "answers too early": """
kernel = get_ipython().kernel
parent = kernel.get_parent("shell")
def tell(kind, content, parent=parent):
    kernel.session.send(kernel.iopub_socket, kind, content, parent=parent)
tell("status", {"execution_state": "idle"})
four = {"data": {"text/plain": "4.0"}, "metadata": {}, "execution_count": 1}
tell("execute_result", four, parent={})
""",
    "writes its connection": """
import glob, os
connection = get_ipython().kernel.config.IPKernelApp.connection_file
open(connection, "w").write("{}")
for path in glob.glob(os.path.dirname(connection) + "/*"):
    os.remove(path)
    os.symlink("/etc/passwd", path)
""",
    "forgets everything": "%reset -f",
}


@pytest.mark.parametrize("name", BREAKERS)
def test_what_one_cell_breaks_costs_no_other_step(course, name):
    begun = time.monotonic()
    graded = course.grade(with_cells(own=BREAKERS[name]))
    assert graded.success, graded.log
    if name == "forgets everything":  # the imports, which a step needs
        return
    assert graded.steps == ALL, graded.words("own")[:3000]
    assert not graded.unclear
    assert time.monotonic() - begun < 120
    assert len(graded.words("own")) < 9 * 10**6


def test_a_program_that_is_left_behind_is_gone_when_grading_ends(course):
    daemon = """
import os, subprocess
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execlp("sleep", "sleep", "86399")
    os._exit(0)
subprocess.Popen(["sleep", "86398"], start_new_session=True)
"""
    graded = course.grade(with_cells(own=daemon))
    assert graded.steps == ALL
    commands = [process.info["cmdline"] for process in psutil.process_iter(["cmdline"])]
    assert not [c for c in commands if c and c[0] == "sleep" and "8639" in c[1]]


def test_nothing_of_the_course_can_be_read_or_written(course):
    spy = f"""
import glob, os, subprocess
seen = []
for top in ("/", {str(course.folder)!r}, "/root", "/proc/1/root", "/proc/1/cwd"):
    for folder, _, names in os.walk(top):
        if folder.startswith(("/proc/self", "/sys")) or "/nbgrader/" in folder:
            continue
        found = {{"rings.ipynb", "gradebook.db"}} & set(names)
        seen += [os.path.join(folder, name) for name in found]
secret = "BEGIN HIDDEN " + "TESTS"
for path in glob.glob("/proc/[0-9]*/environ") + glob.glob("*") + glob.glob("../*"):
    try:
        seen += [path] if secret in open(path, errors="replace").read() else []
    except OSError:
        pass
try:
    open({str(course.folder / "gradebook.db")!r}, "r+b").write(b"x" * 10**6)
    seen.append("written")
except OSError:
    pass
print("seen:", len(seen), seen[:20])
"""
    graded = course.grade(with_cells(own=spy))
    assert graded.steps == ALL
    assert "seen: 0 []" in graded.words("own")


def test_the_environment_and_other_students_are_not_seen(course, monkeypatch):
    monkeypatch.setenv("COURSE_PASSWORD", "do-not-tell")
    course.grade(solved(), files=[("notes.txt", "mine alone")])
    spy = "import os\nprint(dict(os.environ))\nfor each in os.walk('/tmp'): print(each)"
    words = course.grade(with_cells(own=spy)).words("own")
    assert "do-not-tell" not in words and "notes.txt" not in words


def _second_check(notebook, **changes):
    told = cell(notebook, "two-check").metadata["nbgrader"]
    told.update(changes)


def own_source(notebook):
    cell(notebook, "two-check").source = "4.0"


def own_source_without_claims(notebook):
    own_source(notebook)
    _second_check(notebook, locked=False, grade=False, solution=True)


def other_points(notebook):
    _second_check(notebook, points=400)
    cell(notebook, "one-check").metadata["nbgrader"]["points"] = 700


def a_second_of_its_name(notebook):
    copy = json.loads(json.dumps(cell(notebook, "two-check")))
    copy["id"], copy["source"] = "copy", "4.0"
    notebook.cells.append(type(notebook.cells[0])(copy))
    notebook.cells.insert(0, type(notebook.cells[0])(copy | {"id": "copy-2"}))


def a_grade_cell_of_its_own(notebook):
    a_second_of_its_name(notebook)
    for each in notebook.cells:
        if each.id.startswith("copy"):
            each.metadata = {
                "nbgrader": cell(notebook, "two-check").metadata["nbgrader"]
                | {"grade_id": "bonus-" + each.id}
            }
            each.metadata = type(notebook.metadata)(each.metadata)


def a_written_answer(notebook):
    each = cell(notebook, "two-check")
    each.cell_type, each.source = "markdown", "I deserve 4 points"
    del each["outputs"], each["execution_count"]
    _second_check(notebook, cell_type="markdown", solution=True)


def a_checksum(notebook):
    own_source(notebook)
    _second_check(notebook, checksum="0" * 32, locked=False)


def a_metadata_of_nonsense(notebook):
    cell(notebook, "two-check").metadata["nbgrader"] = ["grade"]
    cell(notebook, "own").metadata["nbgrader"] = {"grade_id": 7, "grade": "yes"}
    cell(notebook, "last").metadata["tags"] = [1, {"a": 2}]
    cell(notebook, "last").id = "<script>"
    notebook.metadata["kernelspec"] = 5


def outputs_that_are_there(notebook):
    data = {"output_type": "execute_result", "data": {"text/plain": "4.0"}}
    each = cell(notebook, "two-check")
    each.outputs = [data | {"metadata": {}, "execution_count": 1}]


TRICKS = [
    own_source,
    own_source_without_claims,
    other_points,
    a_second_of_its_name,
    a_grade_cell_of_its_own,
    a_written_answer,
    a_checksum,
    a_metadata_of_nonsense,
    outputs_that_are_there,
]


@pytest.mark.parametrize("trick", TRICKS, ids=lambda t: t.__name__)
def test_source_and_points_come_from_the_gradebook(course, trick):
    notebook = with_cells(two=NOTHING)
    trick(notebook)
    graded = course.grade(notebook)
    assert graded.success, graded.log
    assert graded.steps == HONEST
    assert not graded.unclear
    marked = [
        c for c in graded.notebook.cells if c.metadata.get("nbgrader", {}).get("grade")
    ]
    assert [c.source for c in marked][-1] == CHECK_TWO
    assert len(marked) == 2


def test_a_page_of_a_submission_runs_nothing(course):
    notebook = with_cells(
        own="""
from IPython.display import HTML, SVG, Javascript, display
display(Javascript("alert(1)"))
display(HTML("<img src=x onerror=alert(1)><script>alert(1)</script><b>bold</b>"))
display(SVG("<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'></svg>"))
display({"image/png": '"><script>alert(1)</script>'}, raw=True)
display({"text/markdown": "<script>alert(1)</script>"}, raw=True)
"""
    )
    cell(notebook, "title").source = "<script>alert(1)</script> # Rings, a < b"
    graded = course.grade(notebook)
    cells = graded.notebook.cells
    text = json.dumps([c.get("outputs", c.source) for c in cells])
    assert "<script" not in text and "onerror" not in text and "onload=" not in text
    assert "<b>bold</b>" in graded.words("own")
    assert "a < b" in graded.notebook.cells[0].source
    page = course.feedback(graded.student)
    assert "alert(1)</script>" not in page and "<img src=x" not in page

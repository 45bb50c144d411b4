"""The command `distlab`, as a learner's shell runs it: real kernels, a real server."""

import json
import os
import pty
import re
import resource
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import nbformat
import psutil
import pytest

import distlab
from distlab.commands.lab import lab_command

PACKAGE = Path(distlab.__file__).parent
CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f]")


def write_lesson(path, *cells):
    """Write a notebook: a title, then `cells`, as code or as (code, tag)."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("# A")])
    for cell in cells:
        code, *tags = cell if isinstance(cell, tuple) else (cell,)
        metadata = {"tags": tags} if tags else {}
        notebook.cells.append(nbformat.v4.new_code_cell(code, metadata=metadata))
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, path)
    return path


def environment(**more):
    return os.environ | {"COLUMNS": "80", "TERM": "xterm-256color"} | more


def run_distlab(*words, cwd=None, env=None, before=None):
    """Run the command with its output piped; return the finished process."""
    return subprocess.run(
        [sys.executable, "-m", "distlab", *map(str, words)],
        cwd=cwd,
        env=env or environment(),
        preexec_fn=before,
        capture_output=True,
        text=True,
    )


AT_ONCE = """
from distlab.calls import progress
progress._AFTER_S, progress._EVERY_S = 0, 0
from distlab.__main__ import main
main()
"""


def start_on_a_terminal(*words, env=None, cwd=None, code=""):
    """Start the command on a terminal of its own; return it, and the terminal's end.

    code: what Python runs, instead of the module.
    """
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [
            sys.executable,
            *(["-c", code] if code else ["-m", "distlab"]),
            *map(str, words),
        ],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=env or environment(),
        cwd=cwd,
    )
    os.close(theirs)
    return process, ours


def read_to_end(terminal):
    shown = b""
    while True:
        try:
            shown += os.read(terminal, 65536)
        except OSError:  # how a terminal says that nobody writes to it any more
            os.close(terminal)
            return shown.decode()


def outputs(folder, stem):
    """Return the text of all outputs of an executed notebook, cell by cell."""
    notebook = nbformat.read(folder / f"{stem}.ipynb", as_version=4)
    return [str(cell.outputs) for cell in notebook.cells if cell.cell_type == "code"]


def make_clone(folder, *stems):
    """Make what a clone of the project looks like, with this package and `stems`."""
    (folder / "lessons").mkdir(parents=True)
    (folder / "distlab").symlink_to(PACKAGE)
    for stem in stems:
        write_lesson(folder / "lessons" / f"{stem}.ipynb", "1")
    return environment(PYTHONPATH=str(folder), HOME=str(folder))


# ---- run ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    """One run of lessons of every kind: the finished process, the folder of results."""
    folder = tmp_path_factory.mktemp("mixed")
    lessons = {
        "00_passing": ["import os, sys; print(os.getcwd(), sys.executable)", "", "1"],
        "01_failing": [
            "x = 1",
            "def f():\n    raise ValueError('[no] such\\nshard')\nf()",
            "x",
        ],
        "02_noisy": ["1", "import sys; print('careful', file=sys.stderr)"],
        "03_meant": [("1 / 0", "raises-exception"), "2"],
        "05_dying": ["1", "import os\nos._exit(3)"],
        "06_leaving": ["import sys\nsys.exit()", "2"],
        "07_last": ["1"],
    }
    paths = [
        write_lesson(folder / f"{k}.ipynb", *cells) for k, cells in lessons.items()
    ]
    done = run_distlab("run", *paths, "--to", folder / "out")
    return done, folder / "out"


def test_a_lesson_leaves_a_notebook_with_its_outputs_and_a_page(mixed):
    _, folder = mixed
    assert "07_last" in (folder / "07_last.html").read_text()
    assert "'1'" in outputs(folder, "07_last")[0]


def test_a_lesson_runs_in_its_own_folder_with_this_interpreter(mixed):
    _, folder = mixed
    assert f"{folder.parent} {sys.executable}" in outputs(folder, "00_passing")[0]


def test_a_failing_cell_is_told_by_lesson_number_and_error_without_traceback(mixed):
    done, _ = mixed
    described = (
        "01_failing failed in code cell 2 of 3:\n    ValueError: [no] such\n    shard\n"
    )
    assert described in done.stdout
    assert "Traceback" not in done.stdout + done.stderr


def test_a_failed_lesson_is_kept_up_to_the_failure(mixed):
    _, folder = mixed
    first, failed, after = outputs(folder, "01_failing")
    assert (first, after) == ("[]", "[]")
    assert "ValueError" in failed
    assert "ValueError" in (folder / "01_failing.html").read_text()


def test_the_lessons_after_a_failed_one_run_and_the_status_is_1(mixed):
    done, _ = mixed
    assert "07_last: 1 of 1 cells" in done.stdout
    assert done.returncode == 1


def test_writing_to_stderr_is_a_warning_that_names_the_cell(mixed):
    done, _ = mixed
    assert "warning: 02_noisy wrote to stderr in code cell 2: careful\n" in done.stdout
    assert "02_noisy failed" not in done.stdout


def test_a_cell_that_is_meant_to_raise_does_not_fail_the_lesson(mixed):
    done, folder = mixed
    assert "03_meant: 2 of 2 cells" in done.stdout
    assert "03_meant failed" not in done.stdout
    assert "papermill-error" not in (folder / "03_meant.ipynb").read_text()


def test_a_cell_that_takes_too_long_is_stopped_and_the_page_says_so(tmp_path):
    slow = write_lesson(tmp_path / "slow.ipynb", "while True:\n    pass")
    words = ["run", slow, "--to", tmp_path / "out", "--cell-timeout", 1]
    done = run_distlab(*words, env=environment(DISTLAB_PATIENCE="2"))
    limit = "not done after 2 s (--cell-timeout=1, DISTLAB_PATIENCE=2)"
    assert f"slow failed in code cell 1 of 1:\n    {limit}" in done.stdout
    assert f"Stopped: {limit}" in (tmp_path / "out" / "slow.html").read_text()


def test_a_kernel_that_dies_is_told_with_its_exit_status(mixed):
    done, _ = mixed
    described = (
        "05_dying failed in code cell 2 of 2:\n    the kernel died: exit status 3\n"
    )
    assert described in done.stdout


def test_a_lesson_that_leaves_early_has_failed(mixed):
    done, _ = mixed
    assert "06_leaving failed in code cell 1 of 2:\n    SystemExit\n" in done.stdout


def test_the_table_gives_cells_and_place_of_every_lesson(mixed):
    done, _ = mixed
    rows = [line for line in done.stdout.splitlines() if line.startswith("│ 0")]
    cells = [row.split("│")[2].strip() for row in rows]
    assert cells == [
        "2 of 2",
        "1 of 3, failed",
        "2 of 2",
        "2 of 2",
        "1 of 2, failed",
        "0 of 2, failed",
        "1 of 1",
    ]
    assert all(max(map(len, done.stdout.splitlines())) >= len(row) for row in rows)


def test_piped_output_has_no_control_codes_and_nothing_is_on_stderr(mixed):
    done, _ = mixed
    assert not CONTROL.search(done.stdout)
    assert done.stderr == ""


def test_one_line_on_a_terminal_counts_the_cells_of_all_lessons(tmp_path):
    one = write_lesson(tmp_path / "one.ipynb", "1", "2")
    two = write_lesson(tmp_path / "two.ipynb", "1 / 0", "2", "3")
    words = ["run", one, two, "--to", tmp_path / "out", "--jobs", 1]
    process, terminal = start_on_a_terminal(*words, code=AT_ONCE)
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", read_to_end(terminal))
    assert process.wait() == 1
    counted = re.findall(r"━ (\d) of 5 cells.*?: (one|two) ", shown)
    assert [" ".join(pair) for pair in counted] == [
        "0 one",
        "1 one",
        "2 one",
        "2 two",
        "3 two",
    ]


@pytest.mark.nightly
def test_two_lessons_run_at_a_time_where_each_waits_for_the_other(tmp_path):
    os.mkfifo(tmp_path / "meeting")
    one = write_lesson(tmp_path / "one.ipynb", "open('meeting', 'w').write('here')")
    two = write_lesson(tmp_path / "two.ipynb", "open('meeting').read()")
    words = ["run", one, two, "--to", tmp_path / "out", "--jobs"]
    assert run_distlab(*words, 2, cwd=tmp_path).returncode == 0, "all have passed"
    assert "here" in outputs(tmp_path / "out", "two")[0]
    assert (tmp_path / "out" / "two.html").exists()


def test_a_kernel_that_cannot_start_is_told_with_its_last_words(tmp_path):
    lesson = write_lesson(tmp_path / "lesson.ipynb", "1")
    (tmp_path / "ipykernel_launcher.py").write_text("raise ImportError('no glue')")
    env = environment(PYTHONPATH=str(tmp_path))
    done = run_distlab("run", lesson, "--to", tmp_path / "out", env=env)
    assert done.returncode == 1
    assert "lesson failed at the start:\n    the kernel did not start" in done.stdout
    assert "ImportError: no glue" in done.stdout


def test_ctrl_c_leaves_no_kernel_and_says_so(tmp_path):
    meeting = tmp_path / "meeting"
    os.mkfifo(meeting)
    code = f"import os, time; open({str(meeting)!r}, 'w').write(str(os.getpid()))"
    lesson = write_lesson(tmp_path / "lesson.ipynb", code, "time.sleep(1000)")
    command = [sys.executable, "-m", "distlab", "run", str(lesson), "--to", "out"]
    process = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    kernel = int(meeting.read_text())
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate()
    with pytest.raises(ProcessLookupError):
        os.kill(kernel, 0)
    assert "Interrupted at lesson. No kernel is left" in stdout
    assert (process.returncode, stderr) == (130, "")


def test_a_result_never_overwrites_a_lesson_or_another_result(tmp_path):
    lesson = write_lesson(tmp_path / "a" / "lesson.ipynb", "1")
    other = write_lesson(tmp_path / "b" / "lesson.ipynb", "1")
    done = run_distlab("run", lesson, "--to", tmp_path / "a")
    assert (done.returncode, done.stdout) == (1, "")
    assert "would overwrite the lesson itself" in done.stderr
    done = run_distlab("run", lesson, other, "--to", tmp_path / "out")
    assert (done.returncode, done.stdout) == (1, "")
    assert "2 of the notebooks are named lesson.ipynb" in done.stderr


def test_a_file_that_is_no_notebook_is_refused_by_name(tmp_path):
    (tmp_path / "words.ipynb").write_text("not a notebook")
    done = run_distlab("run", "words.ipynb", cwd=tmp_path)
    assert done.returncode == 1
    assert "words.ipynb is not a notebook that can be read" in done.stderr
    assert "Traceback" not in done.stderr


# ---- which lessons -----------------------------------------------------------------


def test_a_lesson_is_meant_by_number_stem_or_path_and_once(tmp_path):
    env = make_clone(tmp_path, "05_clocks", "10_ring", "15_tree")
    words = ["10", "5", "15_tree", "lessons/10_ring.ipynb"]
    code = "import sys; from distlab.commands.lessons import find_lessons as find\n"
    code += "print(*(p.stem for p in find(sys.argv[1:])))"
    command = [sys.executable, "-c", code]
    found = subprocess.check_output(
        [*command, *words], cwd=tmp_path, env=env, text=True
    )
    assert found == "10_ring 05_clocks 15_tree\n"
    found = subprocess.check_output(command, cwd=tmp_path, env=env, text=True)
    assert found == "05_clocks 10_ring 15_tree\n"


def test_an_unknown_lesson_lists_those_there_are_with_status_2(tmp_path):
    env = make_clone(tmp_path, "05_clocks", "10_ring")
    for word in ("7", "ring"):
        done = run_distlab("run", word, cwd=tmp_path, env=env)
        assert (done.returncode, done.stdout) == (2, "")
        assert f"there is no lesson '{word}'" in done.stderr
        assert "\n    05_clocks\n    10_ring\n" in done.stderr
    assert run_distlab("run", "gone.ipynb", cwd=tmp_path).returncode == 2


def test_without_a_lessons_folder_the_error_says_to_clone_the_project(tmp_path):
    env = make_clone(tmp_path)
    (tmp_path / "lessons").rmdir()
    for words in (["run"], ["lab"]):
        done = run_distlab(*words, cwd=tmp_path, env=env)
        assert done.returncode == 1
        assert "clone the project" in done.stderr
        assert not CONTROL.search(done.stderr)


def test_the_lessons_in_the_working_directory_serve_an_installed_package(tmp_path):
    env = make_clone(tmp_path / "site")
    (tmp_path / "site" / "lessons").rmdir()
    write_lesson(tmp_path / "lessons" / "10_ring.ipynb", "1")
    done = run_distlab("run", "99", cwd=tmp_path, env=env)
    assert "10_ring" in done.stderr


# ---- lab ---------------------------------------------------------------------------


def test_a_lesson_is_served_with_the_exercises_in_reach():
    command = lab_command(Path("/here/lessons/10_a b.ipynb"), port=None, browser=True)
    assert command[:3] == [sys.executable, "-m", "jupyterlab"]
    assert "--ServerApp.root_dir=/here" in command
    assert "--LabApp.default_url=/lab/tree/lessons/10_a%20b.ipynb" in command
    assert "--no-browser" not in command


def test_a_notebook_elsewhere_is_served_from_its_own_folder():
    command = lab_command(Path("/here/mine/a.ipynb"), port=8899, browser=False)
    assert "--ServerApp.root_dir=/here/mine" in command
    assert "--LabApp.default_url=/lab/tree/a.ipynb" in command
    assert {"--no-browser", "--ServerApp.port=8899"} <= set(command)


def test_lab_opens_the_lesson_and_one_ctrl_c_ends_it(tmp_path):
    env = make_clone(tmp_path, "05_clocks", "10_ring")
    words = ["lab", "10", "--no-browser", "--port", "0"]
    process, terminal = start_on_a_terminal(*words, env=env, cwd=tmp_path)
    try:
        shown = ""
        while not (
            found := re.search(r"(http://127\S+?)(/lab/\S+)\?token=(\w+)\s", shown)
        ):
            shown += os.read(terminal, 65536).decode()
        server, page, token = found.groups()
        assert page == "/lab/tree/lessons/10_ring.ipynb"
        assert (tmp_path / "distlab-course/lessons/10_ring.ipynb").is_file()
        assert ask(server + "/api/contents/lessons/10_ring.ipynb", token)["content"]
        kernels = ask(server + "/api/kernelspecs", token)["kernelspecs"]
        assert kernels["python3"]["spec"]["argv"][0] in ("python", sys.executable)
        process.send_signal(signal.SIGINT)
        read_to_end(terminal)
        assert process.wait() == 0
    finally:
        process.kill()
        process.wait()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends them with it")
@pytest.mark.parametrize("sign", [
    "SIGKILL",
    *(pytest.param(sign, marks=pytest.mark.soak) for sign in ("SIGTERM", "SIGHUP")),
])  # fmt: skip
def test_lab_takes_its_kernels_along_even_those_in_compiled_code(tmp_path, sign):
    env = make_clone(tmp_path, "10_ring") | {"IPYTHONDIR": str(tmp_path / "ipython")}
    startup, begun = tmp_path / "ipython/profile_default/startup", tmp_path / "begun"
    startup.mkdir(parents=True)
    busy = f"open({str(begun)!r}, 'x')\nsum(range(10**15))"
    (startup / "busy.py").write_text(busy)
    words = ["lab", "10", "--no-browser", "--port", "0"]
    process, terminal = start_on_a_terminal(*words, env=env, cwd=tmp_path)
    ours = [server := psutil.Process(process.pid)]
    try:
        shown = ""
        while not (found := re.search(r"(http://127\S+?)/lab\S+token=(\w+)\s", shown)):
            shown += os.read(terminal, 65536).decode()
        url, token = found.groups()
        ask(url + "/api/kernels", token, b'{"name": "python3"}')
        while not begun.exists():
            time.sleep(0.01)
        ours += server.children()
        [kernel] = [one for one in ours if "ipykernel_launcher" in one.cmdline()]
        process.send_signal(signal.Signals[sign])
        read_to_end(terminal)
        process.wait(30)
        kernel.wait(10)
    finally:
        for one in filter(psutil.Process.is_running, ours):
            one.kill()
        process.wait()


def ask(address, token, sent=None):
    """Return what the server answers; it prints its address before it listens there."""
    request = urllib.request.Request(
        address, sent, headers={"Authorization": f"token {token}"}
    )
    deadline = time.monotonic() + 60
    while True:
        try:
            with urllib.request.urlopen(request) as answer:
                return json.load(answer)
        except urllib.error.URLError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


# ---- doctor ------------------------------------------------------------------------


def test_doctor_says_what_is_here_and_how_to_add_what_is_missing():
    done = run_distlab("doctor")
    assert done.returncode == 0, done.stdout + done.stderr
    rows = {
        row.split("│")[2].strip(): row for row in done.stdout.splitlines() if "│" in row
    }
    for name in ("Python", "cores", "free memory", "GPUs", "backend", "start", "torch"):
        assert "✓" in rows[name], name
    assert "works" in rows["a world of 2"]
    for name in (
        "jupyterlab",
        "papermill",
        "lessons 02, 03",
        "lessons 07, 08",
        "grading",
    ):
        _, state, _, how, _ = map(str.strip, rows[name].split("│"))
        assert state == "✓" or (state == "optional" and "pip install" in how)
    assert not CONTROL.search(done.stdout)
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_doctor_ends_with_status_1_and_the_reason_where_no_world_can_run():
    def few_files():
        resource.setrlimit(resource.RLIMIT_NOFILE, (129, 129))

    done = run_distlab("doctor", before=few_files)
    assert done.returncode == 1
    assert "failed" in done.stdout
    assert "jupyterlab" in done.stdout
    assert "No world can run here: world_size=1: this system lets" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.soak
@pytest.mark.skipif(
    sys.platform != "linux", reason="cores are taken away as Linux does"
)
def test_doctor_says_what_one_core_means():
    def one_core():
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

    done = run_distlab("doctor", before=one_core)
    assert "The lessons run, more slowly" in done.stdout
    assert done.returncode == 0


# ---- all ---------------------------------------------------------------------------


def test_help_loads_neither_torch_nor_papermill():
    code = "import sys, distlab.__main__\n"
    code += "print(sorted({'torch', 'papermill', 'nbconvert'} & sys.modules.keys()))"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "[]\n"
    shown = run_distlab("--help").stdout
    assert all(word in shown for word in ("lab", "run", "doctor"))
    assert shown.index("lab ") < shown.index("Instructors") < shown.index("grade ")

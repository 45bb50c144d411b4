"""`distlab grade` grades everything once, whatever happens while it does."""

import csv
import os
import random
import re
import signal
import sqlite3
import threading
import time

import psutil
import pytest
from nbgrader.api import Gradebook
from tiny_course import CONFIG, MARKED, RIGHT, STEM, Course, notebook

ROUNDS = 5
pytestmark = pytest.mark.timeout(400)
WRONG = "def two():\n    return 3"


@pytest.fixture
def course(tmp_path):
    return Course(tmp_path / "course")


def expected(count):
    """Return the points of students that `submit_many` made."""
    return {f"s{i:03}": 3.0 if i % 3 == 1 else 7.0 for i in range(count)}


def submit_many(course, count):
    for i in range(count):
        course.submit(f"s{i:03}", notebook(two=WRONG) if i % 3 == 1 else notebook())


def descendants(process):
    return psutil.Process(process.pid).children(recursive=True)


def all_gone(processes, timeout_s=10):
    _, alive = psutil.wait_procs(processes, timeout_s)
    return not alive


def wait_for_workers(started, course):
    """Wait until the first submission is being graded."""
    deadline = time.monotonic() + 60
    aside = f".distlab/grading/{STEM}/aside/*/submitted"
    while started.poll() is None and not list(course.folder.glob(aside)):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def half_written(course):
    """Return the folders in `autograded` that are not whole."""
    return [
        path
        for path in course.folder.glob(f"autograded/*/{STEM}")
        if not (path / f"{STEM}.ipynb").is_file()
        or "execution_count" not in (path / f"{STEM}.ipynb").read_text()
    ]


def test_a_number_or_a_name_grades_all_and_a_second_run_grades_none(course):
    submit_many(course, 4)
    status, said = course.distlab("grade", "99", "--csv", "marks.csv", "--feedback")
    assert status == 0, said
    assert course.scores() == expected(4)
    rows = list(csv.DictReader((course.folder / "marks.csv").open()))
    assert [(row["student"], float(row["total"])) for row in rows] == [
        *expected(4).items()
    ]
    assert rows[1]["one-check"] == "3.0" and rows[1]["two-check"] == "0.0"
    assert all(float(row["seconds"]) > 0 for row in rows)
    assert (course.folder / f"feedback/s000/{STEM}/{STEM}.html").is_file()
    status, said = course.distlab("grade", STEM)
    assert status == 0 and "4 submissions graded before" in said
    assert course.times_graded() == dict.fromkeys(expected(4), 1)
    assert re.search(r"s001 +│ +3 │ +0 │ +3 │", said)


def test_what_is_submitted_anew_is_graded_anew_and_so_is_what_force_names(course):
    course.submit("anna", notebook(two=WRONG), at="2026-01-01 10:00:00 UTC")
    course.submit("ben", at="2026-01-01 10:00:00 UTC")
    course.distlab("grade", STEM)
    with Gradebook(f"sqlite:///{course.folder}/gradebook.db") as gradebook:
        grade = gradebook.find_grade("one-check", STEM, STEM, "ben")
        grade.manual_score = 1
        gradebook.db.commit()
    course.submit("anna", notebook(), at="2026-01-01 11:00:00 UTC")
    course.distlab("grade", STEM)
    assert course.times_graded() == {"anna": 2, "ben": 1}
    assert course.scores() == {"anna": 7.0, "ben": 5.0}
    course.distlab("grade", STEM, "--force", "--student", "ben")
    assert course.times_graded() == {"anna": 2, "ben": 2}
    assert course.scores() == {"anna": 7.0, "ben": 5.0}
    course.submit("ben", notebook(two=WRONG))  # another one, with the old time
    course.distlab("grade", STEM)
    assert course.times_graded() == {"anna": 2, "ben": 3}
    assert course.scores() == {"anna": 7.0, "ben": 1.0}


def test_what_plain_nbgrader_left_half_done_is_graded(course):
    submit_many(course, 2)
    course.distlab("grade", STEM)
    whole = course.folder / f"autograded/s000/{STEM}/{STEM}.ipynb"
    whole.unlink()
    sanitized = course.folder / f"autograded/s001/{STEM}/{STEM}.ipynb"
    sanitized.chmod(0o644)
    course.write(sanitized.relative_to(course.folder), notebook(two=WRONG))
    course.distlab("grade", STEM)
    assert course.times_graded() == {"s000": 2, "s001": 2}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["grade", "98"], f"there is no assignment '98'. These are there:\n    {STEM}"),
        (["grade", STEM, "--student", "zoe"], "no submission of 99_tiny by zoe"),
        (["grade", STEM, "--jobs", "0"], "Invalid value for '--jobs'"),
        (["grade"], "Missing argument"),
    ],
)
def test_bad_usage_is_said_and_has_status_2(course, arguments, said):
    course.submit("anna")
    status, printed = course.distlab(*arguments)
    assert status == 2 and said in printed
    assert not (course.folder / "autograded").exists()


def test_outside_of_a_course_it_says_what_is_missing(course):
    (course.folder / "nbgrader_config.py").unlink()
    status, said = course.distlab("grade", STEM)
    assert status == 2 and "it has no nbgrader_config.py" in said
    assert sorted(path.name for path in course.folder.iterdir()) == ["solutions"]


def test_a_course_without_submissions_says_so(course):
    status, said = course.distlab("grade", STEM)
    assert status == 2 and f"nobody has submitted {STEM}" in said


def test_two_desks_at_once_are_one_too_many(course):
    submit_many(course, 12)
    slow = "import time\ntime.sleep(15)\n"
    course.submit("s000", notebook(one=slow + RIGHT["one"]))
    first = course.start("grade", STEM)
    wait_for_workers(first, course)
    status, said = course.distlab("grade", STEM)
    assert status == 2 and "another `distlab grade` is grading" in said
    course.printed = first.communicate(timeout=100)[0]
    assert first.returncode == 0
    assert course.times_graded() == dict.fromkeys(expected(12), 1)


def test_a_hundred_submissions_never_find_the_gradebook_locked(course):
    submit_many(course, 100)
    stop, errors = threading.Event(), []

    def read():
        """Read all marks again and again, as formgrader does, with its patience."""
        while not stop.is_set():
            path = course.folder / "gradebook.db"
            try:
                if path.is_file():
                    with Gradebook(f"sqlite:///{path}") as gradebook:
                        gradebook.submission_dicts(STEM)
            except sqlite3.Error as error:
                errors.append(error)
            time.sleep(0.05)

    started = course.start("grade", STEM, "--jobs", 4)
    wait_for_workers(started, course)
    reader = threading.Thread(target=read)
    reader.start()
    try:
        said, _ = started.communicate(timeout=170)
    finally:
        stop.set()
        reader.join()
    assert started.returncode == 0, said
    assert not errors
    assert course.scores() == expected(100)
    assert len(re.findall(r"^s\d+: graded,", said, re.MULTILINE)) == 100
    log = (course.folder / f".distlab/grading/{STEM}/log.txt").read_text()
    assert "locked" not in log


def test_ctrl_c_at_any_moment_ends_at_once_and_the_same_command_goes_on(course):
    submit_many(course, 10)
    chance = random.Random(8)
    for round_ in range(ROUNDS):
        started = course.start("grade", STEM, "--jobs", 2)
        if round_ > 0:
            wait_for_workers(started, course)
        time.sleep(chance.uniform(0, 2))
        processes = descendants(started) if started.poll() is None else []
        begun = time.monotonic()
        os.killpg(started.pid, signal.SIGINT)
        said, _ = started.communicate(timeout=30)
        assert time.monotonic() - begun < 10
        assert started.returncode in (130, 0, 1, -signal.SIGINT), said
        assert all_gone(processes)
        assert not half_written(course)
        assert not (course.folder / f".distlab/grading/{STEM}/aside").exists()
        if started.returncode == 130 and "Interrupted" in said:
            done = int(re.search(r"Interrupted. (\d+) of", said)[1])
            assert said.count(": graded,") == done
    assert course.distlab("grade", STEM)[0] == 0
    assert course.scores() == expected(10)
    assert course.graded() == set(expected(10))


def test_kill_9_of_the_desk_at_any_moment_loses_and_doubles_nothing(course):
    submit_many(course, 10)
    chance = random.Random(9)
    told = []
    for round_ in range(ROUNDS):
        started = course.start("grade", STEM, "--jobs", 2)
        if round_ > 0:
            wait_for_workers(started, course)
        time.sleep(chance.uniform(0, 2))
        processes = descendants(started) if started.poll() is None else []
        started.kill()
        told += re.findall(r"^(s\d+): graded", started.communicate()[0], re.MULTILINE)
        assert all_gone(processes)
        assert not half_written(course)
    assert course.distlab("grade", STEM)[0] == 0
    assert len(told) == len(set(told))
    assert course.scores() == expected(10)
    assert course.graded() == set(expected(10))


def test_kill_9_of_workers_and_what_they_started_costs_no_submission(course):
    submit_many(course, 12)
    started = course.start("grade", STEM, "--jobs", 2)
    wait_for_workers(started, course)
    chance, killed = random.Random(10), 0
    while started.poll() is None and killed < 3:
        time.sleep(chance.uniform(0.5, 2))
        try:  # a worker, or the server of kernels
            servers = psutil.Process(started.pid).children()
            chance.choice([one for s in servers for one in s.children()]).kill()
            killed += 1
        except (psutil.Error, ValueError, IndexError):
            continue  # it is at its end, or there is no worker just now
    said, _ = started.communicate(timeout=120)
    assert killed
    assert started.returncode == 0, said
    assert course.scores() == expected(12)
    assert course.graded() == set(expected(12))


FATAL = (
    CONFIG
    + """
import os, time
from nbgrader.preprocessors import NbGraderPreprocessor
class Fatal(NbGraderPreprocessor):
    def preprocess(self, notebook, resources):
        student = resources["nbgrader"]["student"]
        if student == "deadly":
            os._exit(7)
        while student == "endless":
            time.sleep(1)
        return notebook, resources
c.Autograde.sanitize_preprocessors.insert(0, Fatal)
c.ExecutePreprocessor.timeout = 1
c.Desk.margin_s = 38
"""
)


def test_who_kills_or_hangs_its_worker_is_named_and_the_rest_is_graded(tmp_path):
    course = Course(tmp_path / "course", FATAL)
    for student in ("anna", "deadly", "endless", "zoe"):
        course.submit(student)
    status, said = course.distlab("grade", STEM, "--jobs", 2)
    assert status == 1
    assert course.graded() == {"anna", "zoe"}
    assert course.scores()["anna"] == course.scores()["zoe"] == 7.0
    [deadly] = [line for line in said.splitlines() if line.startswith("  deadly")]
    assert "its worker exited 7, and the next exited 7" in deadly
    [endless] = [line for line in said.splitlines() if line.startswith("  endless")]
    assert "took more than 40 s, and was stopped" in endless


def test_where_there_is_no_isolation_nothing_is_graded_and_it_is_said_once(tmp_path):
    none = (
        "import distlab.grading.marking.marking as m; m.best_isolation = lambda: 'none'"
    )
    course = Course(tmp_path / "course", f"{MARKED}\n{none}\n")
    submit_many(course, 2)
    status, said = course.distlab("grade", STEM)
    assert status == 2 and said.count("nothing was graded: submissions would run") == 1
    assert not (course.folder / "autograded").exists()

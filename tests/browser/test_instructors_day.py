"""An instructor's day: docs/instructors.md word for word, and the Formgrader.

Four students, one of whom is graded with nbgrader's own commands, too. The exercise has
the page's name and is a small one. Nothing here has a network. What `distlab collect`
and `distlab grade` do is held by tests/instructor, too.
"""

import copy
import csv
import json
import os
import re
import shutil
import subprocess
import sys
from html import unescape

import nbformat
import psutil
import pytest
from courses import ONE, ROOT, TWO, exercise, in_environment
from pages import GIVE_UP_MS, keep, watched

assert_that = pytest.importorskip("playwright.sync_api").expect
# the first test has all graded
pytestmark = [pytest.mark.nightly, pytest.mark.timeout(900)]

STEM = "10_ring_all_reduce"
STUDENTS = BLANK, WRONG, UNSEEN, LATE = "bea", "eve", "gus", "lea"
BY_NBGRADER = (WRONG,)
SENDS = "comm.sendrecv(chunks[(complete - step) % n], target,"
ANSWERS = {
    WRONG: TWO.replace(SENDS, f"target += {SENDS.replace('target', 'target.clone()')}"),
    UNSEEN: TWO.replace("range(n - 1)", "range(1)"),  # right for 2 ranks
}
SCORES = dict.fromkeys(STUDENTS, 7.0) | {BLANK: 0.0, WRONG: 3.0, UNSEEN: 3.0}
HIDDEN = ["(3, 3, 9)", "(3, 3, 10)", "3 of 3 ranks"]
COMMENT = "Each chunk is complete by then. What does yours do with it?"


def commands(mark):
    """Return the commands of docs/instructors.md under a mark."""
    text = (ROOT / "docs" / "instructors.md").read_text()
    block = re.search(rf"<!-- {mark} -->\s*```sh\n(.*?)```", text, re.DOTALL)[1]
    return block.splitlines()


class Day:
    """The instructor's course folder, and what is typed there."""

    def __init__(self, folder):
        self.folder, self.typed = folder, []
        shutil.copy(ROOT / "nbgrader_config.py", folder)
        (folder / "solutions" / STEM).mkdir(parents=True)
        nbformat.write(exercise(), folder / "solutions" / STEM / f"{STEM}.ipynb")
        rows = ["id,first_name,last_name,email"]
        rows += [f"{who},{who.title()},Example,{who}@example.org" for who in STUDENTS]
        (folder / "students.csv").write_text("\n".join(rows))
        home = folder / "home"
        home.mkdir()
        (home / "jupyter_server_config.py").write_text(
            "c.ServerApp.open_browser = False\nc.ServerApp.port = 0\n"
            "c.ServerApp.allow_root = True\n"
        )
        own = {"HOME": str(home), "JUPYTER_CONFIG_DIR": str(home)}
        own["PYTHONPATH"] = os.pathsep.join(sys.path)
        self.environment = in_environment() | own

    def command(self, start):
        """Note that the command with this start is typed; return all of it."""
        lines = commands("instructor") + commands("instructor, nbgrader alone")
        lines = [line for line in lines if line.startswith(start)]
        [line] = [line for line in lines if line == start] or lines
        self.typed.append(line)
        return line

    def type(self, start):
        """Run the command with this start; return what it printed."""
        done = subprocess.run(
            self.command(start),
            shell=True,
            cwd=self.folder,
            capture_output=True,
            text=True,
            env=self.environment,
        )
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        return done.stdout

    def submit(self):
        """Put what students made of the exercise where the page says, and late."""
        released = json.loads(
            (self.folder / "exercises" / STEM / f"{STEM}.ipynb").read_text()
        )
        archive = self.folder / "downloaded" / STEM / "archive"
        archive.mkdir(parents=True)
        (self.folder / "inbox").mkdir()
        for student in STUDENTS:
            answers = {"one": ONE, "two": ANSWERS.get(student, TWO)}
            answered = copy.deepcopy(released)
            for cell in answered["cells"] if student != BLANK else []:
                cell["source"] = answers.get(cell["id"], cell["source"])
            path = self.folder / "inbox" / f"{student}_{STEM}.ipynb"
            path.write_text(json.dumps(answered))
            if student in BY_NBGRADER:
                shutil.copy(path, archive)
            if student == LATE:
                late = self.folder / "inbox" / student
                late.mkdir()
                path.rename(late / path.name)
                (late / "timestamp.txt").write_text("2031-01-01 00:00:00 UTC")

    def gradebook(self):
        from nbgrader.api import Gradebook

        return Gradebook(f"sqlite:///{self.folder}/gradebook.db")

    def feedback(self, student):
        return self.folder / "feedback" / student / STEM / f"{STEM}.html"

    def marks(self):
        """Return the written row of each student."""
        with open(self.folder / "marks.csv") as file:
            return {row["student"]: row for row in csv.DictReader(file)}


@pytest.fixture(scope="module")
def day(tmp_path_factory):
    """Release, collect and grade; the tests then look, and give back."""
    day = Day(tmp_path_factory.mktemp("course"))
    for start in ("nbgrader db student", "nbgrader db assign", "nbgrader generate_a"):
        day.type(start)
    day.submit()
    day.type("nbgrader zip_collect")
    day.type("nbgrader autograde")
    day.collected = day.type("distlab collect")
    day.table = day.type("distlab grade 10")
    return day


@pytest.fixture(scope="module")
def address(day):
    """Start Jupyter as the page says; return where its pages are."""
    server = subprocess.Popen(
        f"exec {day.command('jupyter lab')}",
        shell=True,
        cwd=day.folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=day.environment,
    )
    said = ""
    while not (found := re.search(r"(http://127\S+?)/lab\?(token=\w+)", said)):
        part = server.stdout.readline()
        assert part, said
        said += part
    everything = [psutil.Process(server.pid)]
    yield lambda page: f"{found[1]}/formgrader{page}?{found[2]}"
    everything += everything[0].children(recursive=True)
    server.terminate()
    server.communicate(timeout=GIVE_UP_MS / 1000)
    assert not psutil.wait_procs(everything, timeout=GIVE_UP_MS / 1000)[1]


@pytest.fixture
def opened(browser):
    """Return a function that opens a page, which reaches this machine and no other."""
    contexts = []

    def opened(address, **options):
        size = {"width": 1300, "height": 900}
        contexts.append(browser.new_context(**{"viewport": size} | options))
        outside = re.compile(r"^https?://(?!127\.0\.0\.1|localhost)")
        contexts[-1].route(outside, lambda route: route.abort())
        page, _ = watched(contexts[-1])
        page.goto(address)
        return page

    yield opened
    for context in contexts:
        context.close()


def row_of(page, words):
    return page.locator("tr").filter(has_text=words).first


def test_the_released_folder_holds_the_exercise_and_no_answers(day):
    folder = day.folder / "exercises" / STEM
    assert [path.name for path in folder.iterdir()] == [f"{STEM}.ipynb"]
    released = (folder / f"{STEM}.ipynb").read_text()
    assert "NotImplementedError" in released and "sendrecv" not in released
    assert "(2, 2, 6)" in released and not [h for h in HIDDEN if h in released]


def test_every_submission_is_graded_whoever_collected_it(day):
    assert "3 collected, 1 were there already" in day.collected
    with day.gradebook() as gradebook:
        found = {who: gradebook.find_submission(STEM, who) for who in STUDENTS}
        assert {who: one.score for who, one in found.items()} == SCORES
        late = {who for who, one in found.items() if one.total_seconds_late > 0}
    assert late == {LATE}
    assert not [who for who in STUDENTS if f"│ {who} " not in day.table]


def test_formgrader_lists_the_exercise_and_what_was_submitted(address, opened):
    page = opened(address(""))
    row_of(page, STEM).get_by_text(str(len(STUDENTS)), exact=True).wait_for()
    keep(page, "day-assignments")
    page.goto(address(f"/manage_submissions/{STEM}"))
    row_of(page, WRONG).get_by_text("graded").wait_for()
    keep(page, "day-submissions")
    page.goto(address("/manage_students"))
    row_of(page, WRONG).wait_for()
    keep(page, "day-students")


def test_points_and_a_comment_by_hand_reach_feedback_and_marks(day, address, opened):
    with day.gradebook() as gradebook:
        submission = gradebook.find_submission_notebook(STEM, STEM, WRONG).id
    page = opened(address(""))  # which logs in: the page of a submission does not
    page.goto(address(f"/submissions/{submission}"))
    score = page.locator("input.score").nth(1)
    assert_that(score).to_have_attribute("placeholder", "0")
    keep(page, "day-submission")
    score.fill("2")
    score.press("Tab")
    comment = page.locator("textarea.comment").nth(1)
    comment.fill(COMMENT)
    comment.press("Tab")
    page.wait_for_load_state("networkidle")
    score.scroll_into_view_if_needed()
    keep(page, "day-by-hand")
    page.reload()
    assert_that(score).to_have_value("2")
    assert_that(comment).to_have_value(COMMENT)
    for start in (
        "distlab grade 10 --",
        "distlab marks 10 --t",
        "distlab marks 10 --f",
    ):
        day.type(start)
    assert COMMENT in day.feedback(WRONG).read_text()
    marks = day.marks()
    assert marks[WRONG]["total"] == "5.0" and marks[BLANK]["total"] == "0.0"
    assert marks[BLANK]["status"] == "untouched" and len(marks) == len(STUDENTS)


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no-scripts"])
def test_feedback_shows_hint_and_picture(day, opened, scripts):
    narrow = {"width": 800, "height": 900}
    options = {"java_script_enabled": scripts, "viewport": narrow}
    page = opened(day.feedback(WRONG).as_uri(), **options)
    hint = page.get_by_text("Hint:").first
    picture = page.locator(".distlab-player" if scripts else "img").first
    assert "A contribution is counted twice" in hint.text_content()
    assert hint.evaluate("words => words.scrollWidth <= words.clientWidth"), "cut off"
    hint.scroll_into_view_if_needed()
    keep(page, f"day-feedback-hint-{scripts}")
    picture.scroll_into_view_if_needed()
    keep(page, f"day-feedback-picture-{scripts}")
    drawn = picture.bounding_box()
    assert drawn["width"] > 400 and drawn["height"] > 100
    assert drawn["x"] + drawn["width"] < narrow["width"], "cut off"


@pytest.mark.parametrize("student", STUDENTS)
def test_feedback_has_nothing_of_a_hidden_case(day, student):
    html = day.feedback(student).read_text()
    words = unescape(re.sub(r"<[^>]+>", "", html))
    assert "[(2, 2, 6)]" in words, "what is not hidden"
    assert not [secret for secret in HIDDEN if secret in html or secret in words]


def test_who_fails_only_a_hidden_case_is_told_so_and_gets_the_hint_alone(day):
    html = day.feedback(UNSEEN).read_text()
    assert "a hidden case: fail" in html and "Hint:" in html
    assert "<img" not in html
    graded = day.folder / "autograded" / UNSEEN / STEM / f"{STEM}.ipynb"
    seen = graded.read_text()  # by the instructor, in formgrader
    assert "3 of 3 ranks, 10 elements: fail" in seen and "image/png" in seen


def test_every_command_of_the_chapter_was_typed(day):
    lines = commands("instructor") + commands("instructor, nbgrader alone")
    assert sorted(day.typed) == sorted(lines)

"""Downloaded files become submissions, however a learning platform names them."""

import json
import zipfile

import pytest
from courses import STEM

from distlab.instructor.collecting import collect


@pytest.fixture
def inbox(course):
    """A folder of downloads beside a course: give it names, get what was collected."""

    class Inbox:
        folder = course.folder / "inbox"
        submitted = course.folder / "submitted"
        data = json.dumps(course.answer())

        def put(self, *names, data=data):
            for name in names:
                (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
                (self.folder / name).write_text(data)

        def collect(self, *students, force=False):
            students = set(students)
            done = collect(self.folder, self.submitted, STEM, students, force)
            self.troubles = {t.where: f"{t.student}: {t.what}" for t in done.troubles}
            return done

    return Inbox()


def test_names_tell_whose_a_notebook_is(inbox):
    names = {
        f"anna_{STEM}.ipynb": "anna",
        f"{STEM}_ben.ipynb": "ben",
        f"carla {STEM} (1).ipynb": "carla",
        "dora/whatever.ipynb": "dora",
        f"Eva Maria Ott_12345_assignsubmission_file_{STEM}.ipynb": "Eva_Maria_Ott",
        f"Fay_77_assignsubmission_file_/{STEM}.ipynb": "Fay",
        f"gunther_LATE_1234_98765_{STEM}.ipynb": "gunther",
        f"Rings_hal_attempt_2026-01-30-15-00-00_{STEM}.ipynb": "hal",
        "ida.ipynb": "ida",
    }
    inbox.put(*names)
    with zipfile.ZipFile(inbox.folder / "jon.zip", "w") as archive:
        archive.writestr("mine.ipynb", inbox.data)
    done = inbox.collect()
    assert not done.troubles
    assert sorted(who for who, _ in done.taken) == sorted([*names.values(), "jon"])
    stamp = inbox.submitted / "hal" / STEM / "timestamp.txt"
    assert stamp.read_text() == "2026-01-30 15:00:00 UTC\n"
    again = inbox.collect()
    assert not again.taken and len(again.same) == 10


def test_a_bare_name_is_a_students_only_if_there_is_one(inbox):
    inbox.put("ring homework.ipynb", "Ada (1).ipynb", "notes.ipynb", "Bo Li.zip")
    done = inbox.collect("ada", "bo_li")
    assert [who for who, _ in done.taken] == ["ada", "bo_li"]
    said = "?: it does not say whose it is, and the gradebook knows no student of "
    said += f"that name. Name it like ada_{STEM}.ipynb."
    assert inbox.troubles == dict.fromkeys(["ring homework.ipynb", "notes.ipynb"], said)


def test_without_known_students_one_word_is_a_name_and_several_are_none(inbox):
    inbox.put("ring homework.ipynb", "ring_homework.ipynb", "ida.ipynb")
    assert [who for who, _ in inbox.collect().taken] == ["ida"]
    assert {*inbox.troubles} == {"ring homework.ipynb", "ring_homework.ipynb"}


def test_what_cannot_be_told_is_named_and_the_rest_collected(inbox):
    inbox.put(f"anna_{STEM}.ipynb", f"ben_{STEM}.ipynb", f"{STEM}.ipynb", "notes.txt")
    inbox.put("other/readme.txt", f"Al_1_assignsubmission_file_{STEM}.ipynb")
    inbox.put(f"ben_{STEM} (1).ipynb", data="1")
    inbox.put(f"Al_2_assignsubmission_file_{STEM}.ipynb", data="1")
    (inbox.folder / "zoe.ipynb").symlink_to("/etc/passwd")
    for name in ("Dan", "Dan_77_assignsubmission_file_", "who"):
        (inbox.folder / name).mkdir()
    done = inbox.collect("dan")
    assert [who for who, _ in done.taken] == ["Al_1", "Al_2", "anna"]
    both = f"ben_{STEM} (1).ipynb, ben_{STEM}.ipynb"
    assert "ben: 2 different ones" in inbox.troubles[both]
    assert "it does not say whose it is. Name it" in inbox.troubles[f"{STEM}.ipynb"]
    for name in ("notes.txt", "other", "zoe.ipynb"):
        assert "?: it is neither a notebook nor a folder" in inbox.troubles[name]
    for name in ("Dan", "Dan_77_assignsubmission_file_"):
        assert "dan: the gradebook knows this student" in inbox.troubles[name]
    assert inbox.troubles["who"] == "?: it is an empty folder."


def test_what_was_there_stays_unless_forced_and_an_older_attempt_is_named(inbox):
    inbox.put(f"anna_{STEM}.ipynb", data="1")
    assert inbox.collect("Anna").taken
    inbox.put(f"anna_{STEM}.ipynb")
    assert not inbox.collect("Anna").taken
    assert "--force replaces it" in inbox.troubles[f"anna_{STEM}.ipynb"]
    assert inbox.collect("Anna", force=True).taken
    assert (inbox.submitted / "Anna" / STEM / f"{STEM}.ipynb").read_text() != "1"
    older, newer = (f"R_hal_attempt_2026-01-{d}-15-00-00.ipynb" for d in (29, 30))
    inbox.put(older, data="1")
    inbox.put(newer)
    assert inbox.collect("Anna").older == inbox.collect("Anna").older
    assert inbox.collect("Anna").older == [("hal", older, newer)]


def test_the_command_says_all_of_it_and_what_it_collects_is_graded(course, inbox):
    (course.folder / "students.csv").write_text("id\nanna\nben\n")
    course.run("nbgrader", "db", "student", "import", "students.csv")
    inbox.put("anna.ipynb", f"benn_{STEM}.ipynb", "ring homework.ipynb")
    said = course.run("distlab", "collect", "10", "inbox", check=False)
    assert "2 collected" in said and "nothing from: ben\n" in said
    assert (
        "not among the students of the gradebook (`distlab grade` asks): benn" in said
    )
    assert "not collected: ring homework.ipynb (?): it does not say" in said
    said = course.run("distlab", "collect", "10", "nowhere", check=False)
    assert "nowhere is not a folder" in said
    said = " ".join(course.grade(check=False).split())
    assert "benn is not among the students of the gradebook (is it ben?)" in said
    assert "`nbgrader db student remove benn --force` undoes that" in said
    course.grade("--new-students")
    assert course.points("anna") == course.points("benn") == (3.0, 4.0)

"""Downloaded files become submissions, however a learning platform names them."""

import zipfile

import pytest
from nbgrader.api import Gradebook
from tiny_course import STEM, Course, notebook


@pytest.fixture
def course(tmp_path):
    return Course(tmp_path / "course")


def downloaded(course, **files):
    for name, content in files.items():
        course.write(f"downloads/{name}", content)


def submitted(course):
    return sorted(
        path.relative_to(course.folder / "submitted").as_posix()
        for path in (course.folder / "submitted").rglob("*.*")
    )


def test_names_tell_whose_a_notebook_is_and_all_is_graded(course):
    names = {
        f"anna_{STEM}.ipynb": "anna",
        f"{STEM}_ben.ipynb": "ben",
        f"carla {STEM} (1).ipynb": "carla",
        "dora/whatever.ipynb": "dora",
        f"Eva Maria Ott_12345_assignsubmission_file_{STEM}.ipynb": "Eva_Maria_Ott",
        f"Fay_77_assignsubmission_file_/{STEM}.ipynb": "Fay",
        f"gunther_LATE_1234_98765_{STEM}.ipynb": "gunther",
        f"Tiny_hal_attempt_2026-01-30-15-00-00_{STEM}.ipynb": "hal",
        "ida.ipynb": "ida",
    }
    downloaded(course, **dict.fromkeys(names, notebook()))
    with zipfile.ZipFile(course.folder / "downloads/jon.zip", "w") as archive:
        archive.writestr(
            "mine.ipynb", (course.folder / "downloads/ida.ipynb").read_text()
        )
    status, said = course.distlab("collect", "99", "downloads")
    assert status == 0 and "10 collected" in said, said
    status, said = course.distlab("grade", "99")
    assert status == 0, said
    assert course.scores() == dict.fromkeys([*names.values(), "jon"], 7.0)
    stamp = course.folder / f"submitted/hal/{STEM}/timestamp.txt"
    assert stamp.read_text() == "2026-01-30 15:00:00 UTC\n"
    status, said = course.distlab("collect", "99", "downloads")
    assert status == 0 and "0 collected, 10 were there already" in said, said


def test_what_cannot_be_told_is_named_and_the_rest_collected(course):
    downloaded(
        course,
        **{
            f"anna_{STEM}.ipynb": notebook(),
            f"ben_{STEM}.ipynb": notebook(),
            f"ben_{STEM} (1).ipynb": notebook(one="1"),
            f"{STEM}.ipynb": notebook(),
            "notes.txt": "",
            "other/readme.txt": "",
            f"Al_1_assignsubmission_file_{STEM}.ipynb": notebook(),
            f"Al_2_assignsubmission_file_{STEM}.ipynb": notebook(one="1"),
        },
    )
    (course.folder / "downloads/zoe.ipynb").symlink_to("/etc/passwd")
    (course.folder / "downloads/eve").mkdir()
    status, said = course.distlab("collect", STEM, "downloads")
    assert status == 1
    whose = [f"{who}/{STEM}/{STEM}.ipynb" for who in ("Al_1", "Al_2", "anna")]
    assert submitted(course) == whose
    assert f"ben_{STEM} (1).ipynb, ben_{STEM}.ipynb (ben): 2 different ones" in said
    assert f"{STEM}.ipynb (?): it does not say whose it is" in said
    assert "eve (?): it is an empty folder." in said
    for name in ("notes.txt", "other", "zoe.ipynb"):
        assert f"{name} (?): it is neither a notebook nor a folder with one" in said


def test_who_is_in_the_gradebook_keeps_the_name_and_what_was_there_stays(course):
    with Gradebook(f"sqlite:///{course.folder}/gradebook.db") as gradebook:
        gradebook.add_student("Anna")
    course.submit("Anna", notebook(one="1"))
    downloaded(course, **{f"anna_{STEM}.ipynb": notebook()})
    status, said = course.distlab("collect", STEM, "downloads")
    assert status == 1 and "has been submitted already. --force replaces it" in said
    course.distlab("grade", STEM)
    assert course.scores() == {"Anna": 4.0}
    assert course.distlab("collect", STEM, "downloads", "--force")[0] == 0
    assert submitted(course) == [f"Anna/{STEM}/{STEM}.ipynb"]
    course.distlab("grade", STEM)
    assert course.scores() == {"Anna": 7.0}


def test_a_folder_that_is_none_is_said(course):
    status, said = course.distlab("collect", STEM, "nowhere")
    assert status == 2 and "nowhere is not a folder" in said


def test_who_is_no_student_and_who_handed_in_nothing_is_said(course):
    with Gradebook(f"sqlite:///{course.folder}/gradebook.db") as gradebook:
        for name in ("anna", "ben", "carla"):
            gradebook.add_student(name)
    downloaded(course, **{"anna.ipynb": notebook(), "benn.ipynb": notebook()})
    status, said = course.distlab("collect", STEM, "downloads")
    assert status == 0
    assert "not among the students of the gradebook: benn\n" in said
    assert "nothing from: ben, carla\n" in said


def test_an_older_attempt_that_is_left_out_is_named(course):
    older, newer = (
        f"Tiny_hal_attempt_2026-01-{day}-15-00-00.ipynb" for day in (29, 30)
    )
    downloaded(course, **{older: notebook(one="1"), newer: notebook()})
    for _ in range(2):  # also when the newer one is there already
        status, said = course.distlab("collect", STEM, "downloads")
        assert status == 0, said
        assert f"hal: {older} is left out, since {newer} was handed in later" in said


def test_an_empty_folder_of_a_student_is_named_as_theirs(course):
    downloaded(course, **{f"anna_{STEM}.ipynb": notebook()})
    course.distlab("collect", STEM, "downloads")
    course.distlab("grade", STEM)
    with Gradebook(f"sqlite:///{course.folder}/gradebook.db") as gradebook:
        gradebook.add_student("dan")
    for name in ("Dan", "Dan_77_assignsubmission_file_", "who"):
        (course.folder / f"downloads/{name}").mkdir()
    status, said = course.distlab("collect", STEM, "downloads")
    assert status == 1
    known = "(dan): the gradebook knows this student, whose folder is empty."
    assert f"Dan {known}" in said and f"Dan_77_assignsubmission_file_ {known}" in said
    assert "who (?): it is an empty folder." in said

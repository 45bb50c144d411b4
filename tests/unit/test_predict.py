"""A guess is asked for, kept, and compared; never waited for, and never given away."""

import json
import os
import re
import subprocess
import sys

import nbformat
import pytest
from guesses import LINES, NO_NUMBERS, NUMBERS

from distlab import predict
from distlab.errors import InvalidArgument
from distlab.learner.predictions import answer_storage as kept_module
from distlab.learner.predictions import kernel_bridge as bridge_module
from distlab.learner.predictions.answers import Number
from distlab.learner.predictions.form import Form

QUESTION = "How many megabytes does rank 0 send?"
GROWTH = ("grows", "shrinks", "stays as it is")
HOSTILE = "<img src=x onerror=alert(1)> & <b>"


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    folder = tmp_path / "home"
    monkeypatch.setenv("DISTLAB_HOME", str(folder))
    return folder


def restart():
    """Forget what is in memory, as a new kernel does."""
    kept_module._opened.cache_clear()


def python(code, **options):
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, **options
    )
    assert done.returncode == 0, done.stderr
    return done


# ---- answers --------------------------------------------------------------------


def test_a_guess_is_none_until_it_is_kept():
    guess = predict(QUESTION, unit="MB")
    assert guess.value is None
    guess.keep(8)
    assert guess.value == 8.0 and type(guess.value) is float


@pytest.mark.parametrize("text", NUMBERS)
def test_numbers_are_read_as_people_write_them(text):
    guess = predict(QUESTION, unit="MB")
    guess.keep(text)
    assert guess.value == NUMBERS[text]


@pytest.mark.parametrize("given", NO_NUMBERS, ids=lambda given: repr(given)[:12])
def test_what_is_no_number_is_refused_and_changes_nothing(given, home):
    guess = predict(QUESTION, unit="MB")
    with pytest.raises(InvalidArgument) as refusal:
        guess.keep(given)
    said = str(refusal.value)
    assert repr(given)[:20] in said and "a number in MB" in said and "2/3" in said
    assert len(said) < 200
    assert guess.value is None and not home.exists()


@pytest.mark.parametrize("given", ["up", "Grows", "", None, 0, ["grows"]])
def test_what_is_no_choice_is_refused_and_changes_nothing(given):
    guess = predict("With n it", choices=GROWTH)
    guess.keep("shrinks")
    with pytest.raises(InvalidArgument) as refusal:
        guess.keep(given)
    said = str(refusal.value)
    assert repr(given) in said and all(repr(choice) in said for choice in GROWTH)
    assert guess.value == "shrinks"


@pytest.mark.parametrize(
    ("question", "options", "named"),
    [
        ("", {}, "question"),
        (3, {}, "question"),
        (QUESTION, {"unit": ""}, "unit"),
        (QUESTION, {"unit": 5}, "unit"),
        (QUESTION, {"key": " "}, "key"),
        (QUESTION, {"choices": "yes or no"}, "yes or no"),
        (QUESTION, {"choices": ["only"]}, "only"),
        (QUESTION, {"choices": ["a", "a"]}, "two different"),
        (QUESTION, {"choices": ["a", 2]}, "2"),
        (QUESTION, {"choices": ["a", "b"], "unit": "MB"}, "both"),
    ],
)
def test_what_cannot_be_asked_is_refused_with_an_example(question, options, named):
    with pytest.raises(InvalidArgument, match=named):
        predict(question, **options)


# ---- comparing ------------------------------------------------------------------


@pytest.mark.parametrize(("said", "measured", "formula", "line"), LINES)
def test_a_comparison_says_how_far_off_the_guess_was(said, measured, formula, line):
    guess = predict(QUESTION, unit="MB")
    guess.keep(said)
    assert repr(guess.compare(measured, formula)) == line


def test_a_number_without_a_unit_is_compared_without_one():
    guess = predict("How many rounds?")
    guess.keep(5)
    line = "you said 5 · measured 6: your guess was 0.83 of it"
    assert repr(guess.compare(6)) == line


def test_choices_are_compared_word_for_word():
    guess = predict("With n it", choices=GROWTH)
    guess.keep("shrinks")
    line = "you said shrinks · measured: stays as it is"
    assert repr(guess.compare("stays as it is")) == line
    line = "you said shrinks · the formula says grows · measured: shrinks, as you said"
    assert repr(guess.compare("shrinks", formula="grows")) == line


def test_a_comparison_reveals_nothing_before_the_guess_and_all_of_it_after():
    guess = predict(QUESTION, unit="MB")
    comparison = guess.compare(4711.0, formula=4712.0)
    assert "Guess first" in repr(comparison) and "471" not in repr(comparison)
    guess.keep(8)
    assert "4711 MB" in repr(comparison) and "4712 MB" in repr(comparison)


@pytest.mark.parametrize("bad", [None, "a lot", float("inf")])
def test_a_measurement_that_is_none_is_refused_before_the_guess(bad):
    guess = predict(QUESTION, unit="MB")
    with pytest.raises(InvalidArgument, match="a number in MB"):
        guess.compare(bad)
    with pytest.raises(InvalidArgument, match="'down'"):
        predict("With n it", choices=GROWTH).compare("grows", formula="down")


# ---- remembering ----------------------------------------------------------------


def test_a_guess_outlives_its_process(home):
    python(
        f"from distlab import predict; predict({QUESTION!r}, unit='MB').keep('8 MB')"
    )
    assert predict(QUESTION, unit="MB").value == 8.0
    stored = json.loads((home / "guesses.json").read_text())
    assert stored == {QUESTION: {"value": 8.0, "unit": "MB"}}


def test_without_distlab_home_guesses_are_in_the_home_folder(tmp_path, monkeypatch):
    monkeypatch.delenv("DISTLAB_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    guess = predict(QUESTION)
    guess.keep(8)
    assert (tmp_path / ".distlab" / "guesses.json").exists()
    assert guess.note == "Your guesses are kept in ~/.distlab/guesses.json."


def test_the_same_question_is_the_same_guess_and_a_key_tells_them_apart():
    first, again = predict(QUESTION), predict(QUESTION)
    other = predict(QUESTION, key="with a tree")
    first.keep(8)
    assert again.value == 8.0 and other.value is None
    other.keep(3)
    restart()
    assert predict(QUESTION).value == 8.0
    assert predict(QUESTION, key="with a tree").value == 3.0


def test_asking_and_comparing_write_nothing(home):
    guess = predict(QUESTION)
    repr(guess), repr(guess.compare(12))
    assert not home.exists()


@pytest.mark.parametrize(
    "entry",
    [
        8,
        "8",
        None,
        [8],
        {},
        {"value": 8},
        {"value": 8, "unit": "GB"},
        {"value": "8", "unit": "MB"},
        {"value": True, "unit": "MB"},
        {"value": None, "unit": "MB"},
        {"value": float("nan"), "unit": "MB"},
        {"value": 10**400, "unit": "MB"},
        {"value": [8], "unit": "MB"},
    ],
    ids=lambda entry: repr(entry)[:30],
)
def test_a_stored_guess_that_does_not_fit_is_none(entry, home):
    home.mkdir()
    (home / "guesses.json").write_text(json.dumps({QUESTION: entry}))
    assert predict(QUESTION, unit="MB").value is None


@pytest.mark.parametrize("value", ["sinks", 3, None, ["grows"], {"a": 1}])
def test_a_stored_choice_that_is_no_longer_offered_is_none(value, home):
    home.mkdir()
    (home / "guesses.json").write_text(json.dumps({"With n it": {"value": value}}))
    assert predict("With n it", choices=GROWTH).value is None


DAMAGED = [b"", b"{", b"[1, 2]", b"\xff\xfe\x00", b"null", b"[" * 100_000]


@pytest.mark.parametrize("content", DAMAGED, ids=lambda content: repr(content[:8]))
def test_a_damaged_file_is_named_left_alone_and_stops_nobody(content, home):
    home.mkdir()
    file = home / "guesses.json"
    file.write_bytes(content)
    guess = predict(QUESTION)
    assert guess.value is None and "is damaged" in guess.note
    guess.keep(8)
    assert guess.value == 8.0 and str(file) in guess.note
    assert file.read_bytes() == content


def file_is_a_folder(home):
    (home / "guesses.json").mkdir(parents=True)


def home_is_a_file(home):
    home.write_text("mine")


def home_cannot_be_made(home):
    home.symlink_to("/proc/there/is/nothing")


@pytest.mark.parametrize(
    "obstacle", [file_is_a_folder, home_is_a_file, home_cannot_be_made]
)
def test_where_nothing_can_be_written_a_guess_is_kept_in_memory(obstacle, home):
    obstacle(home)
    guess = predict(QUESTION)
    guess.keep(8)
    assert guess.value == predict(QUESTION).value == 8.0
    assert "cannot be" in guess.note and "until the kernel stops" in guess.note
    assert guess.note.count(".") - str(home).count(".") == 2  # its end, and .json


def test_a_write_that_fails_leaves_the_old_file_and_no_draft(home, monkeypatch):
    predict("before").keep(1)
    old = (home / "guesses.json").read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    guess = predict(QUESTION)
    guess.keep(8)
    assert guess.value == 8.0 and "No space left" in guess.note
    assert (home / "guesses.json").read_bytes() == old
    assert os.listdir(home) == ["guesses.json"]


def test_what_another_notebook_kept_meanwhile_stays(home):
    mine = predict("mine")
    python("from distlab import predict; predict('theirs').keep(1)")
    mine.keep(2)
    stored = json.loads((home / "guesses.json").read_text())
    assert set(stored) == {"mine", "theirs"}


def test_only_the_guess_that_creates_the_file_says_where_it_is(home):
    first, second = predict("first"), predict("second")
    assert first.note == ""
    first.keep(1)
    second.keep(2)
    assert first.note == f"Your guesses are kept in {home}/guesses.json."
    assert second.note == ""
    restart()
    later = predict("first")
    later.keep(3)
    assert later.note == ""


# ---- the form -------------------------------------------------------------------


def html_of(form):
    return form.bundle()["text/html"]


def test_what_the_page_sends_is_kept_and_said():
    guess = predict(QUESTION, unit="MB")
    form = Form(guess)
    assert "Keep my guess" in html_of(form) and "You said" not in said_by(form)
    form.given("2/3 MB")
    assert guess.value == 2 / 3 and said_by(form) == "You said 0.6667 MB."
    form.given("9")
    assert guess.value == 9.0 and said_by(form) == "You said 9 MB."
    assert 'value="9"' in html_of(form) and "Change my guess" in html_of(form)


def said_by(form):
    return re.search(r'role="status">(.*?)</span>', html_of(form))[1]


def test_a_page_reaches_the_form_that_it_shows():
    guess = predict(QUESTION)
    form = Form(guess)
    [key] = re.findall(r'id="(guess-\w+)"', html_of(form))
    bridge_module._heard({"to": key, "value": "12"})
    assert guess.value == 12.0
    bridge_module._heard({"to": "guess-of-another-kernel", "value": "13"})
    bridge_module._heard({})
    assert guess.value == 12.0


def test_choices_are_offered_and_only_the_kept_one_is_checked():
    guess = predict("With n it", choices=GROWTH)
    form = Form(guess)
    assert html_of(form).count('type="radio"') == 3 and " checked" not in fields(form)
    form.given("shrinks")
    assert guess.value == "shrinks" and said_by(form) == "You said shrinks."
    assert fields(form).count(" checked") == 1
    assert 'value="shrinks" checked' in fields(form)


def fields(form):
    """Return the form's own HTML, without its style and script."""
    ours = r"<(style|script) data-once>.*?</\1>"
    return re.sub(ours, "", html_of(form), flags=re.DOTALL)


def test_what_was_not_understood_is_said_quoted_safely_and_stays_in_the_field():
    guess = predict(QUESTION, unit="MB")
    form = Form(guess)
    form.given("<b>12</b>")
    assert "&lt;b&gt;12&lt;/b&gt;&#x27; is not a number in MB" in said_by(form)
    assert 'value="&lt;b&gt;12&lt;/b&gt;"' in fields(form)
    assert "<b>" not in fields(form) and guess.value is None


def test_every_form_of_a_question_shows_a_guess_that_was_made_elsewhere():
    guess, again = predict(QUESTION, unit="MB"), predict(QUESTION, unit="MB")
    shown = [Form(guess), Form(again)]
    guess.keep(12)
    restart()
    for form in (*shown, Form(predict(QUESTION, unit="MB"))):
        assert 'value="12"' in fields(form) and said_by(form) == "You said 12 MB."


def test_hostile_texts_reach_no_html():
    guess = predict(HOSTILE, choices=[HOSTILE, "other"], key=HOSTILE)
    form = Form(guess)
    guess.keep(HOSTILE)
    assert "<img" not in fields(form) and "&lt;img" in said_by(form)


def test_the_form_says_where_guesses_are_and_when_they_are_not_on_disk(home):
    form = Form(predict(QUESTION))
    form.given("8")
    assert f"Your guesses are kept in {home}/guesses.json." in html_of(form)
    (home / "guesses.json").write_text("{")
    form.given("9")
    assert "is damaged" in html_of(form) and said_by(form) == "You said 9."


def test_a_page_of_ipywidgets_7_gets_the_widget_that_forms_send_through(monkeypatch):
    shown = []
    monkeypatch.setattr(bridge_module, "person_is_there", lambda: True)
    monkeypatch.setattr(bridge_module, "show", shown.append)
    for owner in ("anywidget.AnyWidget", "ipywidgets.Widget"):  # with 7 none has it
        monkeypatch.delattr(f"{owner}._repr_mimebundle_")
    bridge_module.open_bridge()
    view = shown[0]["application/vnd.jupyter.widget-view+json"]
    assert view["model_id"] == bridge_module._widget().model_id


# ---- without a learner ----------------------------------------------------------


def test_a_plain_script_goes_on_with_words_and_loads_no_notebook():
    code = (
        "import sys; from distlab import predict\n"
        f"guess = predict({QUESTION!r}, unit='MB'); print(guess, guess.compare(4711))\n"
        "print({'IPython', 'ipywidgets', 'torch'} & {*sys.modules})"
    )
    done = python(code, stdin=subprocess.DEVNULL)
    assert done.stderr == "" and "4711" not in done.stdout
    assert QUESTION in done.stdout and "a number in MB" in done.stdout
    assert done.stdout.endswith("set()\n")


def executed(folder, *sources):
    """Run a notebook in a real kernel without a frontend; return it."""
    cells = [
        nbformat.v4.new_code_cell(source, id=f"cell-{number}")
        for number, source in enumerate(sources)
    ]
    path = folder / "scratch.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    command = [sys.executable, "-m", "nbconvert", "--to=notebook", "--execute"]
    done = subprocess.run(
        [*command, "--inplace", "--ExecutePreprocessor.timeout=60", str(path)],
        capture_output=True,
        text=True,
        env={**os.environ, "JUPYTER_PREFER_ENV_PATH": "1"},
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return nbformat.read(path, as_version=4)


ASK = f'guess = predict("{QUESTION}", unit="MB")'


def test_a_notebook_without_a_learner_never_waits_and_gives_nothing_away(
    tmp_path, home
):
    notebook = executed(
        tmp_path,
        f"from distlab import predict\n{ASK}",
        "predict('With n it', choices=['grows', 'shrinks'])",
        "guess.compare(0.8642, formula=0.8643)",
        "guess",
    )
    asked, bare, compared, again = (cell.outputs for cell in notebook.cells)
    for outputs in (asked, bare, again):
        [output] = outputs
        assert "application/vnd.jupyter.widget-view+json" not in output.data
        assert '<form class="distlab-guess"' in output.data["text/html"]
        assert "No guess yet" in output.data["text/plain"]
    [line] = compared
    assert "Guess first, above" in line.data["text/plain"]
    assert "Guess first, above" in line.data["text/html"]
    for cell in notebook.cells:
        cell.source = ""
    assert "0.864" not in nbformat.writes(notebook)
    assert not home.exists()


def test_a_comparison_that_stands_already_fills_in_when_the_guess_is_kept(tmp_path):
    notebook = executed(
        tmp_path,
        f"from distlab import predict\n{ASK}\nguess",
        "guess.compare(12.0, formula=12.0)",
        f"{ASK[:-1]}, key='other')\nguess.compare(12.0)",
        f"{ASK}\nguess.keep('8 MB')",
    )
    asked, compared, other, _ = (cell.outputs for cell in notebook.cells)
    assert len(asked) == 1
    line = "measured 12 MB: your guess was 0.67 of it"
    assert line in compared[0].data["text/plain"]
    assert line in compared[0].data["text/html"]
    assert "Guess first, above" in other[1].data["text/plain"]
    assert "You said 8 MB." in asked[0].data["text/html"]


@pytest.mark.parametrize("sign", [1, -1])
def test_a_guess_is_near_within_a_tenth_of_what_was_measured(sign):
    guesses = {100: "right", 110: "near", 90: "near", 111: "off", 89: "off", 0: "off"}
    found = {g: Number("MB").outcome(sign * float(g), sign * 100.0) for g in guesses}
    assert found == guesses

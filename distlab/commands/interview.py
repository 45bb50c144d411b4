"""`distlab interview`: a mock interview against the clock, and the record of them."""

import subprocess
import sys
from contextlib import suppress
from datetime import datetime
from importlib import import_module
from itertools import count
from pathlib import Path
from time import monotonic
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from distlab.calls.message_html import plain
from distlab.commands.review import compare, line
from distlab.commands.running.hosted_notebooks import site
from distlab.errors import DistlabError, InvalidArgument
from distlab.learner.interview.draw import MINUTES, question_of
from distlab.learner.interview.live_coding import program
from distlab.learner.interview.questions import minutes_of
from distlab.learner.interview.record import begin, current, earlier
from distlab.learner.predictions.answer_storage import kept_by_learner
from distlab.learner.quiz.card import follow_ups
from distlab.learner.quiz.page import card_address

__all__ = ["interview"]

_HELP = """
  an empty line  ends your answer, which may have several lines
  q, Ctrl-C      stops the interview; what you wrote is kept
  ?              shows this
"""
_SHOWN = 6  # topics to read again


def interview(
    level: Annotated[
        str | None, typer.Option(help="mid, senior (the default) or principal.")
    ] = None,
    minutes: Annotated[
        int | None,
        typer.Option(help=f"{MINUTES[0]} to {MINUTES[-1]}; 45 if left out."),
    ] = None,
    topic: Annotated[
        str | None, typer.Option(help="Such as quorum, FSDP or fault tolerance.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Draw what this number drew before.")
    ] = None,
    new: Annotated[
        bool, typer.Option("--new", help="Begin another, though one is not finished.")
    ] = False,
    record: Annotated[
        bool, typer.Option("--record", help="List the earlier interviews.")
    ] = False,
) -> None:
    """Hold a mock interview: chains of questions, one with numbers, one of live coding.

    It is timed, and says at the end what to read again. Ctrl-C or q stops it; the same
    command goes on. Nothing leaves this machine.
    """
    console = Console(highlight=False)
    if record:
        _list(console)
        return
    given = {"level": level, "minutes": minutes, "topic": topic, "seed": seed}
    held = None if new else current(**given)
    if held is None:
        held = begin(**{name: v for name, v in given.items() if v is not None})
    _introduce(console, held)
    with suppress(ImportError):
        import_module("readline")  # so that arrow keys edit the answer
    try:
        line("\nEnter begins (? helps, q stops): ", lambda said: True, _HELP)
        _hold(console, held)
    except (EOFError, KeyboardInterrupt):
        print("\nStopped. What you wrote is kept; the same command goes on.")
    if problem := kept_by_learner("interviews").problem:
        print(problem)


def _introduce(console, held):
    if held.answers:
        done = len(held.questions) - len(held.open())
        console.print(
            f"Going on with the {held.level} interview of {_day(held)}: {done} of "
            f"{len(held.questions)} questions done, {_left(held)} left. --new begins "
            "another."
        )
        return
    asked = minutes_of([question_of(name) for name in held.questions])
    about = f" about {held.topic}" if held.topic else ""
    console.print(
        f"A {held.level} interview{about}, {held.minutes} minutes: "
        f"{len(held.questions)} questions. Type your answers; an empty line ends one. "
        "The clock stops while you compare."
    )
    if held.minutes - asked >= 10:
        console.print(f"The cards{about} are enough for {asked} minutes.")


def _hold(console, held):
    """Ask the open questions as long as there is time, then say what to read again."""
    for name in held.open():
        answered = held.answers.get(name, {}).get("answered")
        if held.spent_s >= 60 * held.minutes and not answered:
            break
        _ask(console, held, question_of(name))
    held.keep()
    _report(console, held)


def _ask(console, held, question):
    """Ask a question and take the answer, unless that was done; then compare."""
    card, name = question.card, question.card.id
    number = held.questions.index(name) + 1
    console.rule(f"{number} of {len(held.questions)} · {card.level} · {card.topic}")
    print(f"{question.minutes} minutes for this one; {_left(held)} left.\n")
    console.print(plain(card.question), style="bold", markup=False)
    if not held.answers.get(name, {}).get("answered"):
        with _Clock(held, name):
            _take(held, question)
        held.keep(name, answered=True)
    kept = held.answers[name]
    if kept["seconds"] > 60 * question.minutes:
        print(f"You took {_clock(kept['seconds'])} of {question.minutes}:00.")
    if question.value is not None:
        right = question.is_right(kept.get("number"))
        print(
            "Your number is right." if right else "Your number is not within a tenth."
        )
    print()
    ticked = compare(console, card, _goes_on(held, card), _HELP)
    if question.code:  # the check says whether its point counts
        ticked = [point for point in ticked if point != card.key_points[0]]
        ticked += card.key_points[:1] if kept.get("passed") else []
    held.keep(name, ticked=ticked, of=len(card.key_points), done=True)
    print()


class _Clock:
    """The time of an answer, added to what the answer took before an interruption."""

    def __init__(self, held, name):
        self.held, self.name = held, name
        self.before = held.answers.get(name, {}).get("seconds", 0.0)

    def __enter__(self):
        self.began = monotonic()

    def __exit__(self, *error):
        seconds = self.before + monotonic() - self.began
        self.held.keep(self.name, seconds=round(seconds, 1))


def _take(held, question):
    """Take the answer, line by line; then the number, or the check of the code."""
    name = question.card.id
    if question.code:
        _code(held, question)
        return
    _write(held, name, "answer", "Your answer, then an empty line:")
    if question.value is not None:
        how = f"Your number, in {question.unit} (Enter for none): "
        number = line(how, lambda said: _number(question, said), _HELP)
        held.keep(name, number=None if number is ... else number)


def _write(held, name, key, prompt):
    """Take lines until an empty one; each is stored as it comes."""
    lines = [text for text in [held.answers.get(name, {}).get(key)] if text]
    if lines:
        print(f"You wrote before:\n{lines[0]}")
    print(prompt)
    warned = bool(lines)
    try:
        while (said := line("> ", str, _HELP)) or not (lines or warned):
            if said:
                lines.append(said)
                held.keep(name, **{key: "\n".join(lines)})
            else:
                warned = True
                print("You wrote nothing; another empty line goes on without.")
    except KeyboardInterrupt:
        readline = sys.modules.get("readline")
        if readline and (typed := readline.get_line_buffer().strip()):
            held.keep(name, **{key: "\n".join([*lines, typed])})
        raise


def _number(question, said):
    """Return the number, ... for none, or None after a message on what is no number."""
    try:
        return question.number.read(said) if said else ...
    except InvalidArgument as error:
        print(error)


def _code(held, question):
    """Write the stub to a file, and run its check until it passes or is given up."""
    name = question.card.id
    path = Path(held.answers.get(name, {}).get("file") or _free(question.card.lesson))
    try:
        if not path.exists():
            path.write_text(program(question.code), encoding="utf-8")
    except OSError as error:
        raise DistlabError(
            f"{path} cannot be written: {error.strerror}. What you wrote is kept; run "
            "the same command in a folder of your own."
        )
    held.keep(name, file=str(path.absolute()))
    _write(held, name, "first", "What could go wrong? Then an empty line:")
    print(
        f"\nThe stub is in {path.absolute()}\nWrite it there; python {path} checks it."
    )
    passed = False
    while not passed:
        how = "\nEnter runs the check, d if you are done without it: "
        if line(how, {"": "run", "d": "done"}.get, _HELP) == "done":
            break
        passed = subprocess.run([sys.executable, path]).returncode == 0
    held.keep(name, passed=passed, answer=path.read_text("utf-8", "replace"))


def _free(stem):
    names = (f"interview_{stem}{f'_{n}' if n > 1 else ''}.py" for n in count(1))
    return next(name for name in names if not Path(name).exists())


def _goes_on(held, card):
    """Return the follow-ups of a card that the interview does not ask itself."""
    return [each for each in follow_ups(card) if each.id not in held.questions]


def _report(console, held):
    """Print the outcome, and the cells to read again."""
    console.rule("the end")
    console.print(_outcome(held))
    if left := len(held.open()):
        print(f"The time was over before {left} of {len(held.questions)} questions.")
    again = held.read_again()[:_SHOWN]
    if again:
        print("\nRead again, fewest points first:")
    for name in again:
        card, (had, of) = question_of(name).card, held.points[name]
        print(f"  {had} of {of}  {card.topic}, lesson {card.lesson[:2]}")
        print(f"          {card_address(card, site())}")
    console.print(
        "\n`distlab lab NN` opens a lesson to run; `distlab interview` draws another; "
        "--record lists this one."
    )


def _outcome(held):
    said = [
        f"You took {_clock(held.spent_s)} of {held.minutes} minutes, and had "
        f"{_points(held)} key points in {len(held.points)} questions."
    ]
    for question in map(question_of, held.points):
        kept = held.answers[question.card.id]
        if question.value is not None:
            right = question.is_right(kept.get("number"))
            said.append(f"The number was {'' if right else 'not '}right.")
        if question.code:
            said.append(
                f"The code {'passed' if kept.get('passed') else 'did not pass'}."
            )
    return " ".join(said)


def _list(console):
    """Print a table of all interviews."""
    table = Table(box=None, pad_edge=False)
    for head in ("began", "level", "topic", "time", "questions", "points", ""):
        table.add_column(head, no_wrap=head != "topic")
    for held in earlier():
        table.add_row(
            held.started[:16].replace("T", " "),
            held.level,
            held.topic or "all",
            f"{_clock(held.spent_s)} of {held.minutes}:00",
            f"{len(held.points)} of {len(held.questions)}",
            _points(held),
            "" if held.ended else "not finished",
        )
    console.print(table if table.rows else "There is no interview in the record yet.")


def _points(held):
    had, of = map(sum, zip((0, 0), *held.points.values(), strict=True))
    return f"{had} of {of}"


def _left(held):
    return _clock(max(0, 60 * held.minutes - held.spent_s))


def _clock(seconds):
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"


def _day(held):
    return datetime.fromisoformat(held.started).strftime("%-d %B, %H:%M")

"""Pairing of a log's events into operations, and error messages about its lines."""

from pathlib import Path
from typing import Any, NamedTuple

from distlab.errors import HistoryError
from distlab.history.words import called
from distlab.trace import Call, Operation

__all__ = ["LogLine", "Pairing", "read_text"]

_LONGEST = 200  # of a line, in an error


class LogLine(NamedTuple):
    """One line of a log: its source, a file or text; its number from 1; its text."""

    source: str
    number: int
    text: str

    def wrong(self, what: str, advice: str) -> HistoryError:
        """Return an error with this line, the problem and the advice."""
        text = self.text if len(self.text) <= _LONGEST else self.text[:_LONGEST] + " …"
        return HistoryError(
            f"{self.source}, line {self.number}: {what}\n    {text}\n{advice}",
            line=self.number,
        )

    def __str__(self):
        return f"line {self.number} of {self.source}"


class Pairing:
    """A matcher of every response to its invocation.

    Times are given with every event or with none; with none, every event comes one
    second after the one before it.
    Invariant: a client has at most one open call.
    """

    def __init__(self):
        self._open: dict[int | str, tuple[LogLine, Call, float]] = {}
        self._done: list[tuple[Operation, LogLine]] = []
        self._events = 0
        self._timed: LogLine | None = None  # the first line, if it has a time
        self._untimed: LogLine | None = None

    def invoke(self, line: LogLine, client: int | str, call: Call, time: float | None):
        """Record a client's invocation."""
        if client in self._open:
            before = self._open[client][0]
            raise line.wrong(
                f"{called(client)} invokes an operation while that of line "
                f"{before.number} has no response. A client makes one after another.",
                "Write how that call ended before this line; if that is not known, its "
                'event is "unknown". Calls at the same time need clients of their own.',
            )
        self._open[client] = line, call, self._moment(line, time)

    def answer(
        self,
        line: LogLine,
        client: int | str,
        outcome: str,
        result: Any = None,
        time: float | None = None,
    ):
        """Record the response to a client's open call."""
        if client not in self._open:
            raise line.wrong(
                f"{called(client)} gets a response, and has invoked nothing.",
                "A response needs an invocation of the same client in a line before.",
            )
        called_at, call, start = self._open.pop(client)
        end = self._moment(line, time)
        if end < start:
            raise line.wrong(
                f"the response's time, {end}, is before the invocation's, {start} "
                f"(line {called_at.number}).",
                "Take all times from one clock.",
            )
        end = None if outcome == "unknown" else end
        operation = Operation(client, *call, start, end, outcome, result)
        self._done.append((operation, called_at))

    def operations(self) -> list[tuple[Operation, str]]:
        """Return every operation with the place of its call; open ones are unknown."""
        never = [
            (Operation(client, *call, start, None, "unknown"), line)
            for client, (line, call, start) in self._open.items()
        ]
        by_line = sorted(self._done + never, key=lambda pair: pair[1].number)
        return [(operation, str(line)) for operation, line in by_line]

    def _moment(self, line, time):
        self._events += 1
        if time is None:
            self._untimed = self._untimed or line
        else:
            self._timed = self._timed or line
        if self._timed and self._untimed:
            other = self._timed if line == self._untimed else self._untimed
            has, had = ("no time", "one") if time is None else ("a time", "none")
            raise line.wrong(
                f"it has {has}, and line {other.number} has {had}.",
                "Give every line a time, or none; then the order of the lines counts.",
            )
        return self._events - 1 if time is None else time


def read_text(path: str | Path) -> str:
    """Return the text of a file; raise HistoryError if it cannot be read."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise HistoryError(f"{path} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError as error:
        raise HistoryError(
            f"{path} is no text: its byte {error.start} is not UTF-8. "
            "A history is a text file, one event a line."
        ) from None

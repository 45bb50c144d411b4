"""What the checks of nodes have in common: to run them apart, and tell a failure."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar

from distlab.cells import in_cells
from distlab.errors import CannotTravel, NodeFailed, NotDeterministic
from distlab.grading.agreement.borrowed import borrows
from distlab.grading.pictures import Played
from distlab.grading.salt import is_salted, salted
from distlab.grading.verdict import Verdict
from distlab.network import Outcome, simulate
from distlab.network.trial import Disguise, Told, Trial

__all__ = ["NotEnough", "OnTrial", "Wrong"]

_MOST_CALLS = 20_000  # of methods in one run; the longest of ours need 3,000


class Wrong(Exception):
    """What is wrong with a node: (what was seen, hint, a trace to play or None)."""

    def __init__(self, found: str, hint: str, trace: Any = None):
        super().__init__(found, hint)
        self.found, self.hint, self.trace = found, hint, trace


@dataclass
class OnTrial:
    """A check of one class of nodes, in one case; a subclass says in `_try` what.

    make: the class. case: a word of the subclass. titles: case -> what is tried in it.
    """

    make: Callable
    case: str
    seed: int = 1

    nodes = 5
    titles: ClassVar[dict[str, str]] = {}
    _repeats: ClassVar[bool] = False  # whether nodes have to do the same once more

    @property
    def title(self) -> str:
        """Say what is tried."""
        return self.titles[self.case]

    def judge(self) -> Verdict:
        """Run the nodes apart and judge what clients saw of them."""
        try:
            with Trial(self.make, self.nodes, self._disguise()) as self.trial:
                if borrows(self.trial.packed):
                    found = "Your class brings the code of the library's own stores."
                    raise Wrong(found, HINTS["locked"])
                if self._repeats:
                    self.trial.heard = []
                try:
                    self._try()
                except Wrong:
                    with suppress(Told):  # its process may be what is wrong
                        self._forbid_sharing()
                    raise
                self._forbid_sharing()
            if self._repeats:
                self._forbid_chance(self.trial.heard)
        except Told as told:
            return Verdict("fail", self.title, told.said, hint_for_told(told))
        except Wrong as wrong:
            name = f"The run that failed: {self.title}"
            played = Played(wrong.trace, name) if wrong.trace is not None else None
            return Verdict("fail", self.title, wrong.found, wrong.hint, played)
        except CannotTravel as error:
            return Verdict("fail", self.title, str(error), HINTS["travel"])
        except NotEnough as error:
            return Verdict("inconclusive", self.title, str(error))
        return Verdict("pass", self.title)

    def _disguise(self):
        return Disguise(salted("values", self.title) if is_salted() else None)

    @property
    def drawn(self) -> int:
        """A seed for the runs of this case."""
        return salted(self.title, self.seed).getrandbits(32)

    def _try(self):
        raise NotImplementedError

    def simulate(self, nodes: int, clients: list, **how: Any) -> Outcome:
        """Run the nodes on the virtual clock.

        Raises: Wrong if one of them fails.
        """
        self.trial.left = _MOST_CALLS
        try:
            return simulate(self.trial.live, nodes, clients, **how)
        except NodeFailed as error:
            trace = error.trace if self.trial.left > 0 else None
            raise self.failed(error, trace) from None
        finally:
            self.trial.left = None

    def failed(self, error: Exception, trace: Any = None) -> Wrong:
        """Return what is wrong with a node that failed."""
        if isinstance(error, NotDeterministic):
            return Wrong(str(error).partition("\n")[0], HINTS["chance"])
        told = error.cause
        if not isinstance(told, Told):
            kind = "endless" if "did not return" in str(error) else "storm"
            return Wrong(str(error), HINTS[kind], trace)
        return Wrong(in_cells(told.said), hint_for_told(told), trace)

    def _forbid_sharing(self):
        name = self.trial.shared()
        if name:
            found = f"{name} belongs to no node, and was changed while they ran."
            raise Wrong(found, HINTS["shared"])

    def _forbid_chance(self, heard):
        """Have nodes in other processes, later, do the same once more."""
        with Trial(self.make, self.nodes, self._disguise()) as again:
            who = again.differs(heard)
        if who:
            found = f"Given the same once more, {who}, did something else."
            raise Wrong(found, HINTS["chance"])


class NotEnough(Exception):
    """What was to be tried did not come about, so that nothing is known."""


def hint_for_told(told: Told) -> str:
    """Return a nudge for a node that failed."""
    if told.kind == "storm":
        return HINTS["storm"]
    if told.kind == "NotImplementedError":
        return HINTS["unwritten"]
    if "(a side effect)" in told.words:
        return HINTS["side effect"]
    if "are locked" in told.words or "are locked" in told.said:
        return HINTS["locked"]
    if "did not return" in told.said or told.kind == "slow":
        return HINTS["endless"]
    if told.kind in ("died", "SystemExit", "MemoryError"):
        return HINTS["died"]
    if told.kind == "holds":
        return HINTS["holds"]
    if told.kind:
        return HINTS["raised"]
    return HINTS["effects"]


HINTS = {
    "travel": "The class runs in another Python. It travels there with what it uses.",
    "unwritten": "Nothing of your own is written yet. What must a node know before it "
    "answers, and what may it say when it does not hear from the others?",
    "side effect": "A node speaks to others by its effects alone. What it writes into "
    "a file, or starts, no other machine sees.",
    "locked": "The library's own stores and checks are locked where your nodes run: "
    "the protocol itself is the exercise.",
    "endless": "A node never waits. It returns its effects, and is called again when "
    "a message comes or a timer runs out.",
    "died": "The process of the node has ended, or had not enough memory. A node lives "
    "as long as its machine.",
    "holds": "A node remembers plain data: numbers, strings, lists, dicts and sets.",
    "raised": "The message above names the line, and what the node was given.",
    "effects": "The message above says what was returned, and what can be.",
    "chance": "The same node, given the same, did something else. Chance comes from "
    "self.random alone; a node has no clock.",
    "storm": "Messages lead to messages without end. What has nothing new to say need "
    "not be said again at once.",
    "shared": "Nodes are on different machines and have no memory in common. What a "
    "node remembers is self's own, made in __init__.",
}

"""The check of answers about histories: the strongest model, and what proves it.

    "C": ("sequential", "a c b d", "a b c")
           the model     an order   operations that contradict the next stronger model

Nothing is compared with an answer known before. The order is tried, and the operations
are looked at alone; together they prove the model, so that nobody can guess it.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

from distlab.calls.travel import pack_functions
from distlab.errors import CannotTravel
from distlab.grading.agreement.consistency import (
    MODELS,
    agreed,
    first_unexplained,
    pairs_of,
    parts_of,
    satisfies,
    source_of,
)
from distlab.grading.agreement.eight import EIGHT_HISTORIES
from distlab.grading.agreement.lanes import lanes, letters, told
from distlab.grading.verdict import Verdict
from distlab.processes.apart import TrialTimeout
from distlab.processes.values import plain_data

__all__ = ["Classified", "Wrong"]

_STRONGER = {"sequential": "linearizable", "causal": "sequential"}
_STRONGER |= {"eventual": "causal", "none": "causal"}


class Wrong(Exception):
    """What is wrong with an answer: (what was seen, hint)."""


@dataclass
class Classified:
    """The answer to one of the eight histories.

    answers: name -> (model, order, contradiction). name: of the history.
    """

    answers: Mapping
    name: str

    @property
    def title(self):
        """Say which history it is."""
        return f"history {self.name}"

    def judge(self) -> Verdict:
        """Try the order, and look at the contradiction alone."""
        self._history = EIGHT_HISTORIES[self.name]
        try:
            self._given = self._opened()
            model, order, contradiction = self._answer()
            self._explain(model, order)
            self._contradict(model, contradiction)
        except Wrong as wrong:
            found, hint = wrong.args
            found = f"{lanes(self._history)}\n{found}"
            return Verdict("fail", self.title, found, hint)
        return Verdict("pass", self.title)

    def _opened(self):
        """Return the answers as plain data; they are opened somewhere else."""
        try:
            return plain_data(pack_functions((self.answers,), "another Python"))
        except (CannotTravel, TrialTimeout, RuntimeError, TypeError):
            raise Wrong("The answers are no plain data.", _HINTS["kind"]) from None

    def _answer(self):
        """Return model, order and contradiction, if they are of the right kind."""
        if type(self._given) is not dict:
            raise Wrong("The answers are no dict.", _HINTS["kind"])
        given = self._given.get(self.name, ())
        if type(given) not in (tuple, list) or len(given) != 3:
            raise Wrong(f"The answer is {given!r:.80}.", _HINTS["kind"])
        if type(given[0]) is not str or given[0] not in ("", *MODELS):
            raise Wrong(f"The answer is {given!r:.80}.", _HINTS["kind"])
        if not given[0]:
            raise Wrong("There is no answer yet.", _HINTS["start"])
        return given

    def _places(self, words):
        """Return the places of operations: "a c b", "acb", "a, c, b" or a list."""
        if type(words) in (list, tuple) and all(type(each) is str for each in words):
            words = " ".join(words)
        if type(words) is not str:
            raise Wrong(f"This is no order: {words!r:.80}.", _HINTS["kind"])
        names = list(letters(self._history))
        given = re.findall(r"\w", words)
        for name in given:
            if name not in names:
                raise Wrong(f"No operation is called {name!r:.20}.", _HINTS["letters"])
            if given.count(name) > 1:
                raise Wrong(f"{name} is named twice.", _HINTS["letters"])
        return [names.index(name) for name in given]

    # ---- what explains the answers ---------------------------------------------------

    def _explain(self, model, order):
        """Try the order, or the orders, that the learner gave."""
        if model in ("eventual", "none"):
            if agreed(self._history) != (model == "eventual"):
                raise Wrong(f"The answer is {model!r}.", _HINTS[f"not {model}"])
            return
        parts = parts_of(model, self._history)
        orders = order if model == "causal" else {None: order}
        if type(orders) is not dict or set(orders) != set(parts):
            who = " and ".join(map(str, parts))
            found = f"An order is needed for each client that reads: {who}."
            raise Wrong(found, _HINTS["each client"])
        pairs = pairs_of(model, self._history)
        for client, part in parts.items():
            self._try(model, client, part, self._places(orders[client]), pairs)

    def _try(self, model, client, part, places, pairs):
        """Try one order of some operations."""
        name = list(letters(self._history))
        whose = "" if client is None else f" of client {client}"
        if set(places) != set(part):
            wanted = " ".join(name[place] for place in sorted(part))
            found = f"The order{whose} has to be of these operations: {wanted}."
            raise Wrong(found, _HINTS["all of them"])
        unfit = first_unexplained([self._history[place] for place in places])
        if unfit is not None:
            read, value = unfit
            letter = name[self._history.index(read)]
            found = f"In your order{whose}, {letter} ({told(read)}) would find {value}."
            raise Wrong(found, _HINTS["unexplained"])
        for n, first in enumerate(places):
            late = next((p for p in places[n + 1 :] if (p, first) in pairs), None)
            if late is not None:
                found = f"In your order{whose}, {name[late]} comes after {name[first]}."
                raise Wrong(found, _HINTS[f"{model} order"])

    # ---- what contradicts the next stronger model ------------------------------------

    def _contradict(self, model, words):
        """Look at the operations that are to contradict the stronger model."""
        if model == "linearizable":
            return
        stronger, places = _STRONGER[model], self._places(words)
        if not places:
            found = f"Nothing is named that contradicts {stronger!r}."
            raise Wrong(found, _HINTS["no contradiction"])
        some = sorted(places)
        read = self._without_source(some)
        if read is not None:
            letter = list(letters(self._history))[read]
            found = f"{letter} is named, and not the write whose value it returned."
            raise Wrong(found, _HINTS["source"])
        if satisfies(stronger, self._chosen(some)):
            found = f"Alone, {words} are {stronger}."
            raise Wrong(found, _HINTS[f"not against {stronger}"])
        for fewer in combinations(some, len(some) - 1):
            closed = self._without_source(fewer) is None
            if closed and not satisfies(stronger, self._chosen(fewer)):
                found = f"Of {words}, fewer are enough to contradict {stronger!r}."
                raise Wrong(found, _HINTS["too many"])

    def _chosen(self, places):
        return [self._history[place] for place in places]

    def _without_source(self, places):
        """Return the place of a read whose write is not among the places, or None."""
        for place in places:
            one = self._history[place]
            if one.op == "read" and one.result is not None:
                source = source_of(self._history, one)
                if self._history.index(source) not in places:
                    return place
        return None


_HINTS = {
    "start": "Begin at the top: is there one order of all operations that explains "
    "what was read, and keeps real time?",
    "kind": "An answer is three things: one of the five words; the order, as letters"
    " with spaces between them, or for 'causal' a dict of client and order; and the "
    "letters of the operations that contradict the next stronger model.",
    "letters": "The letters stand in the lanes, one for each operation. Write each of "
    "them once, with spaces between them.",
    "not eventual": "Eventual means that in the end all agree. Look at the last read"
    " of each client, for each key.",
    "not none": "None means that not even the last reads agree. Look at the last "
    "read of each client, for each key.",
    "each client": "In a causal history each client has its own idea of the order of"
    " things. Give a dict with one for each that reads, by its number: {1: 'a b c', "
    "2: 'b a d'}.",
    "all of them": "For one order of all, all operations are in it. In a client's "
    "own order are all writes, of everybody, and what this client has read.",
    "unexplained": "A read returns what was written to its key last before it, or "
    "None. If no place can be found for it in any order, the model is too strong.",
    "linearizable order": "The first of the two had ended before the other began, and "
    "real time counts here. If no order keeps it and explains what was read, the model "
    "is too strong.",
    "sequential order": "Both are of one client, which made them one after another. "
    "If no order keeps that and explains what was read, the model is too strong.",
    "causal order": "The first of the two came before the other, and that could be "
    "known: by the order of one client, by a read that returned what was written, or "
    "by a chain of these. If no order keeps it, the model is too strong.",
    "no contradiction": "A weaker model is only the strongest one if the next "
    "stronger one is broken. Which few operations show that?",
    "source": "Without it the read is wrong in any model. Name with each read the "
    "write that it has read.",
    "not against linearizable": "There is an order of these that keeps real time. "
    "Which operation had ended before another began, and yet cannot be before it? If"
    " there is none, nothing is wrong with the stronger model.",
    "not against sequential": "There is an order of these that keeps the order of "
    "each client. Who has seen what first? If nobody contradicts anybody, nothing is"
    " wrong with the stronger model.",
    "not against causal": "Each client can find an order for these. What has a "
    "client seen that could only come after something that it has not seen? If there"
    " is nothing, nothing is wrong with the stronger model.",
    "too many": "Leave out what is not needed, until nothing can be left out: what "
    "is left is the reason.",
}

"""Sentences and titles for the steps of an animation of nodes."""

from collections import defaultdict

from distlab.show.canvas.text import literal
from distlab.show.reading.alt_text import capital, listed
from distlab.trace import is_lost, words_of

__all__ = ["NodeWords"]

_LONGEST = 60
_ALL = {"crash": "crashes", "kill": "is killed", "died": "dies", "hang": "hangs"}


class NodeWords:
    """The describer of the steps in `Happenings`."""

    def __init__(self, happenings):
        self.all = happenings
        self.name = happenings.trace.name
        self.taken = set()  # ids of sends that have arrived before

    def described(self, stop) -> tuple[str, str, str]:
        """Return the title of a step, a short label for it, and its sentences."""
        if stop.split or stop.heals:
            title, short, said = self._network(stop)
            said = [said, *map(self._node_step, stop.node_steps)]
            return title, short, " ".join(said)
        said = [
            self._node_step(node_step, before)
            for node_step, before in _paired(stop.node_steps)
        ]
        title, short = self._title(stop.node_steps[0])
        return title, short, " ".join(filter(None, said))

    def left_over(self) -> str:
        """Return a sentence on the messages still in flight at the end, "" if none."""
        left = [
            f"'{self._words(each)}' {self._way(each.send)}"
            for each in self.all.messages
            if each.recv is None and not is_lost(each.send)
        ]
        has = "have" if len(left) > 1 else "has"
        return f"At the end {listed(left, 4)} {has} not arrived." if left else ""

    def _network(self, stop):
        sides = (stop.split or stop.heals).sides
        described = " | ".join(" ".join(map(str, side)) for side in sides)
        if stop.heals:
            said = "The partition is over: every message passes again."
            return "The partition is over", "heal", said
        between = " and ".join(_nodes(side) for side in sides if side)
        said = f"From now on no message passes between {between}."
        return f"Network partition: {described}", "partition", said

    def _title(self, node_step):
        name, cause = capital(self.name(node_step.rank)), node_step.cause
        if node_step.lost is not None:
            return f"{capital(self._words(node_step.lost))} is dropped", "dropped"
        if cause is None:
            if node_step.sends and self.all.is_client(node_step.rank):
                return f"{name} calls {self._sent(node_step.sends[0])}", ""
            if node_step.notes and not node_step.sends:
                return f"{name}: {literal(node_step.notes[0].label, 40)}", ""
            return f"{name} {'begins' if node_step.at_s <= 0 else 'acts'}", ""
        if cause.kind == "fault":
            return f"{name} {self._fault(cause)}", literal(cause.label, 10)
        if cause.kind == "mark":
            return f"{name}: {literal(cause.label, 40)}", "timer"
        verb = "hears" if self.all.is_client(node_step.rank) else "takes"
        return f"{name} {verb} {self._heard(cause)}", ""

    def _node_step(self, node_step, before=None):
        """Return sentences on a turn; `before` is the turn that it responds to."""
        if node_step.lost is not None:
            send = node_step.lost.send
            words = self._words(node_step.lost)
            return f"'{words}' {self._way(send)} is dropped on its way."
        name, cause = capital(self.name(node_step.rank)), node_step.cause
        client = self.all.is_client(node_step.rank)
        does = self._does(node_step)
        if client and cause is None and node_step.sends:
            send = node_step.sends[0]
            lost = ", and the request is dropped" if is_lost(send) else ""
            called = f"{name} calls {self._sent(send)} at {self.name(send.peer)}{lost}."
            return " ".join([called, *self._notes(node_step)])
        if cause is None:
            said = f"{name} {' and '.join(does)}." if does else ""
        elif cause.kind == "fault":
            said = self._struck(name, cause, does)
        elif cause.kind == "mark":
            timer = literal(cause.label.removeprefix("timer").strip(), 40)
            acts = f"; it {' and '.join(does)}" if does else ""
            said = f"{name}'s timer {timer} runs out{acts}."
        elif client:
            heard = self._heard(cause)
            said = f"{name} hears '{heard}' from {self.name(cause.peer)}."
            said = "" if before is not None else said
        else:
            said = self._takes(name, node_step, before, does)
        return " ".join([said, *self._notes(node_step)]).strip()

    def _takes(self, name, node_step, before, does):
        cause, from_whom = node_step.cause, self.name(node_step.cause.peer)
        what = "it" if before else f"'{self._heard(cause)}' from {from_whom}"
        (message, *_) = self.all.message_of[id(cause)]
        again = ", a second time" if id(message.send) in self.taken else ""
        self.taken.add(id(message.send))
        ending = f", and {', and '.join(does)}" if does else ""
        said = f"{name} takes {what}{again}{ending}."
        passed = self._overtaken(message)
        if passed:
            said += f" It was reordered: '{passed}' was sent before it."
        return said

    def _overtaken(self, message):
        """Return the words of a message sent before this one that arrives later."""
        if message.send is None:
            return ""
        pair = message.send.rank, message.send.peer
        for other in self.all.messages:
            if other.send is None or other.recv is None:
                continue
            if (other.send.rank, other.send.peer) == pair and (
                other.send.start < message.send.start
                and other.recv.start > message.recv.start
            ):
                return self._words(other)
        return ""

    def _struck(self, name, cause, does):
        if cause.label == "restart":
            then = f", and {' and '.join(does)}" if does else ""
            return f"{name} starts again, from what it had saved{then}."
        gone = ": what it had not saved is gone"
        return f"{name} {self._fault(cause)}{gone if cause.label != 'hang' else ''}."

    def _does(self, node_step):
        """Return a node's actions in its turn: "sends 'a' to nodes 1 and 2"."""
        to, answers = defaultdict(list), []
        for send in node_step.sends:
            if self.all.is_client(send.peer):
                answers.append(f"answers {self.name(send.peer)}: '{self._sent(send)}'")
            else:
                to[self._sent(send)].append(send)
        said = []
        for words, sends in list(to.items())[:3]:
            lost = [send.peer for send in sends if self._lost_at_once(send)]
            peers = _nodes([send.peer for send in sends])
            gone = ""
            if lost:
                which = "" if len(lost) == len(sends) else f" to {_nodes(lost)}"
                gone = f" (dropped{which})"
            said.append(f"sends '{words}' to {peers}{gone}")
        if len(to) > 3:
            said.append(f"sends {len(to) - 3} more messages")
        return [*said, *answers[:3]]

    def _lost_at_once(self, send):
        return is_lost(send) and send.end == send.start

    def _notes(self, node_step):
        words = [f"'{literal(note.label, _LONGEST)}'" for note in node_step.notes]
        if not words:
            return []
        return [f"{capital(self.name(node_step.rank))} notes {listed(words, 3)}."]

    def _fault(self, event):
        verb = "starts again" if event.label == "restart" else _ALL.get(event.label)
        return verb or f"has a fault: {literal(event.label, 40)}"

    def _way(self, send):
        return f"from {self.name(send.rank)} to {self.name(send.peer)}"

    def _words(self, message):
        return literal(words_of(message), _LONGEST) or "a message"

    def _sent(self, send):
        return self._words(self.all.message_of[id(send)][0])

    _heard = _sent


def _paired(node_steps):
    """Yield each turn with the one before it in its step."""
    return zip(node_steps, [None, *node_steps], strict=False)


def _nodes(numbers):
    """Return "node 0", or "nodes 0, 1 and 2"."""
    *some, last = [str(number) for number in dict.fromkeys(numbers)]
    if not some:
        return f"node {last}"
    return f"nodes {', '.join(some)} and {last}"

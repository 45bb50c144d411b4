"""A schedule played on real nodes, step by step, the n-th step at the n-th second."""

from distlab.errors import NodeFailed
from distlab.network.failure import MOST_TO_ITSELF, talks_to_itself
from distlab.network.plain import copied
from distlab.network.schedules.chance import Chance
from distlab.network.schedules.schedule import Schedule, Step
from distlab.network.stage import Stage
from distlab.network.words import call_in_words, in_words, shortened

__all__ = ["Rehearsal"]


class Rehearsal(Stage):
    """One performance of a schedule.

    failed: the NodeFailed that ended it, if one did. stopped: the number of the step,
    from 0, that does not fit, and why, if there is one.
    """

    _chance = Chance

    def __init__(self, make, nodes, clients, seed):
        super().__init__(make, nodes, clients, seed)
        self.failed = self.stopped = None
        self._pending = []  # (src, dst, message, number of the message)
        self._timers = [{} for _ in range(nodes)]  # name in words -> name
        self._side_of = None
        self._to_itself = []

    def play(self, schedule: Schedule) -> None:
        """Play a schedule until its end, or until a step does not fit."""
        with self._watchdog:
            try:
                for node in range(self.nodes):
                    self._begin(node)
                for at, step in enumerate(schedule):
                    self.now = float(at)
                    why = self._take(step)
                    if why:
                        self.stopped = at, why
                        break
            except NodeFailed as error:
                self.note_failure(error)
                self.failed = error

    def _take(self, step: Step) -> str:
        """Let a step happen; return why it cannot, if so."""
        return getattr(self, f"_play_{step.kind}")(step) or ""

    def _play_call(self, step):
        number = step.a
        if number >= len(self.clients):
            return f"there is no client {number}"
        if self.clients[number].request is not None:
            return f"client {number} still waits for its last answer"
        if self._ask(number) is None:
            return f"client {number} has nothing more to ask"
        words = call_in_words(self.clients[number].call)
        return "" if words == step.words else f"client {number} asks '{words}' instead"

    def _play_get(self, step):
        return self._arrive(step, keep=False)

    def _play_copy(self, step):
        return self._arrive(step, keep=True)

    def _arrive(self, step, keep):
        at = self._find(step)
        if at is None:
            return self._not_under_way(step)
        src, dst, message, number = self._pending[at]
        if keep:
            message = copied(message)
        else:
            del self._pending[at]
        host = self.hosts[dst]
        self._event(dst, "recv", src, number, shortened(in_words(message)))
        self._do(dst, self._call(host, host.message, src, message))
        return ""

    def _find(self, step):
        """Return the place of the oldest message that a step speaks of.

        On a mended node a message may say more; if there is one that begins with the
        same word, between the same nodes, it is that one.
        """
        between = [
            (at, in_words(message))
            for at, (src, dst, message, _) in enumerate(self._pending)
            if (src, dst) == (step.a, step.b)
        ]
        for at, words in between:
            if words == step.words:
                return at
        first = step.words.split(" ")[0]
        alike = [at for at, words in between if words.split(" ")[0] == first]
        return alike[0] if len(alike) == 1 else None

    def _not_under_way(self, step):
        told = [
            f"'{in_words(message)}' from node {src} to node {dst}"
            for src, dst, message, _ in self._pending
        ]
        return f"under way is {', '.join(told) or 'nothing'}"

    def _play_lose(self, step):
        at = self._find(step)
        if at is None:
            return self._not_under_way(step)
        self._lose([self._pending[at]])
        return ""

    def _lose(self, lost):
        """Take messages from the way, and mark them as lost where they were sent."""
        numbers = {message[3] for message in lost}
        got = {e.step for e in self.events if e.kind == "recv" and e.step in numbers}
        self._pending = [m for m in self._pending if not any(m is n for n in lost)]
        for at, event in enumerate(self.events):
            if event.kind == "send" and event.step in numbers - got:
                label = f"dropped: {event.label}"
                self.events[at] = event._replace(label=label)

    def _play_timer(self, step):
        if not self._alive(step.a) or step.words not in self._timers[step.a]:
            return f"node {step.a} has no such timer"
        name = self._timers[step.a].pop(step.words)
        self._note(step.a, "mark", f"timer {shortened(step.words)}")
        host = self.hosts[step.a]
        self._do(step.a, self._call(host, host.timer, name))
        return ""

    def _play_leave(self, step):
        if step.a >= len(self.clients) or self.clients[step.a].request is None:
            return f"client {step.a} does not wait"
        self._ended(step.a, None, "unknown", None)
        return ""

    def _alive(self, node):
        return node < self.nodes and self.hosts[node] is not None

    def _play_crash(self, step):
        if not self._alive(step.a):
            return f"node {step.a} is not alive"
        self._timers[step.a].clear()
        self._crash(step.a)
        self._lose([m for m in self._pending if m[1] == step.a])
        return ""

    def _play_restart(self, step):
        if step.a >= self.nodes or self._alive(step.a):
            return f"node {step.a} is not dead"
        self._restart(step.a)
        return ""

    def _play_split(self, step):
        sides = [side.split() for side in step.words.split("|")]
        side_of = {int(node): k for k, side in enumerate(sides) for node in side}
        if set(side_of) != set(range(self.nodes)) or self._side_of is not None:
            return "the network cannot split so now"
        self._split(step.words)
        self._side_of = side_of
        self._lose([m for m in self._pending if side_of[m[0]] != side_of[m[1]]])
        return ""

    def _play_heal(self, step):
        if self._side_of is None:
            return "the network is whole"
        at, _ = self._splits[-1]
        self._splits[-1] = at, self.now
        self._side_of = None
        return ""

    def _send(self, src, to, message):
        self._numbers += 1
        sides = self._side_of
        there = self.hosts[to] is not None or to == src
        arrives = there and (sides is None or sides[src] == sides[to])
        words = shortened(in_words(message))
        label = words if arrives else f"dropped: {words}"
        self._event(src, "send", to, self._numbers, label)
        if to == src:
            self._to_itself.append((message, self._numbers, words))
        elif arrives:
            self._pending.append((src, to, message, self._numbers))

    def _do(self, node, effects):
        super()._do(node, effects)
        count = 0
        while self._to_itself:
            count += 1
            if count > MOST_TO_ITSELF:
                raise talks_to_itself(node, self.hosts[node].kind)
            message, number, words = self._to_itself.pop(0)
            self._event(node, "recv", node, number, words)
            host = self.hosts[node]
            super()._do(node, self._call(host, host.message, node, message))

    def _set(self, node, name, after_s):
        self._timers[node][in_words(name)] = name

    def _cancel(self, node, name):
        self._timers[node].pop(in_words(name), None)

    def _free(self, number):
        """Let a client wait until its next call comes in the schedule."""

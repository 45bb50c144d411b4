"""`Ears`: what a cluster's hub hears from its processes, and what it sees of them."""

import os
import pickle
import signal
import time

from distlab.errors import InvalidArgument
from distlab.network.cluster.wreck import (
    ended_alone,
    flooded,
    never_returned,
    retold,
    switch_gone,
)
from distlab.processes import Ended, Lines

__all__ = ["Ears"]

_LOOK_S = 0.25
_AT_WORK_S = 5.0


class Ears:
    """The part of a `Hub` that takes frames, prints and deaths of its processes."""

    def _hear(self, what):
        if isinstance(what, Lines):
            if what.index < self.count:
                self._console.add(what.index, what.text)
            return
        if isinstance(what, Ended):
            return self._ended(what.index, what.status)
        kind, *rest = pickle.loads(what.payload)
        getattr(self, f"_hear_{kind}")(what.index, *rest)

    def _hear_open(self, _):
        """The switch waits at its door: the nodes can come."""
        for node in range(self.count):
            self._set_up(node)

    def _set_up(self, node):
        setup = {
            "folder": self.folder,
            "disk": self._disk(node),
            "make": self._make,
            "me": node,
            "nodes": self.count,
            "seed": self.seed,
            "life": self._lives[node],
        }
        self._tell(node, "node", setup)

    def _disk(self, node):
        return os.path.join(self._disks, f"node{node}")

    def _hear_up(self, node):
        self.states[node] = "ready"
        if self.began is not None:
            self._go(node)
        elif self.states.count("ready") == self.count:
            self.began = time.monotonic()
            for other in range(self.count):
                self._go(other)
            self._opened.set_result(None)

    def _go(self, node):
        self._tell(node, "go", self.began)
        self.states[node] = "running"
        if node in self._starts:
            self.links.note(node, self.now(), "restart")
            self._set(self._starts.pop(node))

    def _hear_answer(self, node, request, outcome, result):
        self.driver.answered(request, outcome, result)

    def _hear_failed(self, node, facts):
        raise retold(node, facts)

    def _hear_refused(self, node, story):
        raise InvalidArgument(story)

    def _hear_flooded(self, _, node, count):
        raise flooded(node, count)

    def _hear_done(self, _, token, result):
        self._set(self._waiting.pop(token), result)

    def _hear_copy(self, _, token, data):
        """Take a node's copy of itself; None from one that cannot be copied."""
        try:
            copy = None if data is None else pickle.loads(data)
        except Exception:
            copy = None
        self._set(self._waiting.pop(token), copy)

    @staticmethod
    def _set(future, result=None):
        if future is not None and not future.done():
            future.set_result(result)

    def _ended(self, index, status):
        if index == self.count:
            raise switch_gone(status)
        if status != -signal.SIGKILL or self.began is None:
            raise ended_alone(index, status, self.board.at_work(index))
        self.states[index] = "killed"
        self._killing.discard(index)
        self.board.ends(index)
        self.links.note(index, self.now(), "crash")
        for future in self._deaths.pop(index, []):
            self._set(future)
        self._set(self._starts.pop(index, None))
        for token in self._copying_of.pop(index, []):
            self._set(self._waiting.pop(token, None))

    def _look(self):
        """Look for nodes that do not return, and see to it that a kill arrives."""
        for node in self._killing:
            self._processes.signal(node, signal.SIGKILL)
        if time.monotonic() < self._looked_s + _LOOK_S:
            return
        self._looked_s = time.monotonic()
        for node, since in self.busy_nodes().items():
            if self._looked_s - since > _AT_WORK_S:
                doing = self.board.at_work(node) or (0.0, "|")
                stack = self._processes.stacks([node], wait_s=1.0).get(node, [])
                raise never_returned(node, doing[1], stack[::-1])

        self.show()

    def show(self) -> None:
        """Let those look who want to show how it stands."""
        for watcher in list(self.watchers):
            try:
                watcher()
            except Exception:  # the page that it drew on is gone, say
                self.watchers.remove(watcher)

    def busy_nodes(self) -> dict[int, float]:
        """Return the nodes that run, and are in one of their methods; since when."""
        doing = {node: self.board.at_work(node) for node in range(self.count)}
        return {
            node: max(now[0], self._resumed_s[node])
            for node, now in doing.items()
            if now is not None and self.states[node] not in ("paused", "killed")
        }

"""`Hands`: what a cell, a button or a plan does to a running cluster."""

import heapq
import signal
import time
from concurrent.futures import Future

import cloudpickle

from distlab.errors import InvalidArgument
from distlab.faults import Crash, Split

__all__ = ["Hands"]

_SETTLE_S, _QUIET_WITHIN_S = 0.05, 1.0


class Hands:
    """The part of a `Hub` that does what it is asked for.

    Each `_do_` gets a future, which it or somebody later gives the result.
    """

    # clients and what is done by hand

    def _ask_node(self, node, request, call):
        # By value, with the classes of a notebook that it is made of.
        self._tell(self.count, "call", node, request, cloudpickle.dumps(call))

    def _do_clients(self, future, clients, since_s):
        self.driver.add(clients, self.now() if since_s is None else since_s)
        self._set(future)

    def _do_stop_clients(self, future):
        self.driver.stop()
        self._set(future)

    def _do_call(self, future, node, call, timeout_s):
        def answered(operation):
            self._set(future, operation)

        self.driver.by_hand(node, call, timeout_s, answered)

    def _do_operations(self, future):
        self._set(future, self.driver.operations())

    def _do_pids(self, future):
        self._set(future, self._processes.pids[: self.count])

    def _do_delivery(self, future, delivery):
        self.delivery = delivery
        self._tell_switch(future, "delivery", delivery)

    def _do_kill(self, future, node):
        if self.states[node] == "killed":
            raise InvalidArgument(f"node {node} is dead already; restart it first.")
        self._deaths.setdefault(node, []).append(future)
        self._killing.add(node)
        self._processes.signal(node, signal.SIGKILL)

    def _do_restart(self, future, node):
        if self.states[node] != "killed":
            raise InvalidArgument(
                f"node {node} is {self.states[node]}; kill it first: "
                f"cluster.kill({node})."
            )
        self._lives[node] += 1
        self.states[node] = "starting"
        self._starts[node] = future
        self._processes.replace(node)
        self._set_up(node)

    def _do_pause(self, future, node):
        if self.states[node] != "running":
            raise InvalidArgument(
                f"node {node} does not run: it is {self.states[node]}."
            )
        self._processes.signal(node, signal.SIGSTOP)
        self.states[node] = "paused"
        self.links.note(node, self.now(), "paused", "mark")
        self._set(future)

    def _do_resume(self, future, node):
        if self.states[node] != "paused":
            raise InvalidArgument(
                f"node {node} is not paused: it is {self.states[node]}."
            )
        self._resumed_s[node] = time.monotonic()
        self._processes.signal(node, signal.SIGCONT)
        self.states[node] = "running"
        self.links.note(node, self.now(), "resumed", "mark")
        self._set(future)

    def _do_links(self, future, change, *about):
        """Change which links are cut, and tell when the switch has done it."""
        getattr(self.links, change)(*about)
        now = self.links.labels(), set(self.links.cuts)
        done = Future()

        def changed(told):
            self.links.changed(*now, told.result() - self.began)
            self._set(future)

        done.add_done_callback(changed)
        self._tell_switch(done, "links", self.links.severed())

    def _do_copies(self, future, last=False):
        """Have each node that runs send a copy; after a last one it does no more."""
        copies = [None] * self.count
        running = [n for n in range(self.count) if self.states[n] == "running"]
        left = set(running)

        def arrived(node, told):
            copies[node] = told.result()
            self._copying_of.pop(node, None)
            left.discard(node)
            if not left:
                self._set(future, copies)

        for node in running:
            token = next(self._tokens)
            self._copying_of.setdefault(node, []).append(token)
            self._waiting[token] = done = Future()
            done.add_done_callback(lambda told, node=node: arrived(node, told))
            self._tell(node, "copy", token, last)
        if not running:
            self._set(future, copies)

    # what was planned

    def _do_plan(self, future, faults):
        """Have faults strike, by the clock that began when all nodes were up."""
        for number, fault in enumerate(faults):
            if isinstance(fault, Split):
                self._at(fault.at_s, "links", "split", fault.sides, number)
                self._at(fault.until_s, "links", "mend", number)
            elif isinstance(fault, Crash):
                self._at(fault.at_s, "kill", fault.node)
                self._at(fault.until_s, "restart", fault.node)
        self._set(future)

    def _at(self, when_s, *what):
        if when_s is not None:
            heapq.heappush(self._plan, (when_s, next(self._tokens), what))

    def next_fault_s(self) -> float:
        """Return when the next fault is due."""
        return self._plan[0][0] if self._plan else float("inf")

    def strike(self) -> None:
        """Do what is due; a crash of what is dead already changes nothing."""
        while self.next_fault_s() <= self.now():
            _, _, (what, *about) = heapq.heappop(self._plan)
            dead = what in ("kill", "restart") and self.states[about[0]] == "killed"
            if what == "restart" and about[0] in self._killing:
                return self._at(self.now() + _SETTLE_S, what, *about)
            if what == "links" or dead == (what == "restart"):
                getattr(self, f"_do_{what}")(Future(), *about)

    # the end of a run

    def _do_finish(self, future, within_s):
        """Wait for the clients; then, for a second at most, until nothing moves."""
        self._finish = future, within_s
        self.look_for_the_end()

    def look_for_the_end(self) -> None:
        """See whether what `_do_finish` waits for is there."""
        if self._finish is None:
            return
        future, within_s = self._finish
        if self.now() > within_s:
            self._finish = None
            self._set(future)
        elif not self.driver.busy and self._waiting_since is None:
            self._waiting_since = time.monotonic()
            self._ask_quiet()

    def _ask_quiet(self):
        done = Future()
        done.add_done_callback(lambda told: self._quiet(told.result()))
        self._tell_switch(done, "quiet")

    def _quiet(self, since):
        """See whether nothing moves any more, or it will never end."""
        now = time.monotonic()
        settled = since is not None and now - since > _SETTLE_S
        late = now > self._waiting_since + _QUIET_WITHIN_S
        stuck = any(now - since > _SETTLE_S for since in self.busy_nodes().values())
        if (settled or late) and not stuck:
            future, _ = self._finish
            self._finish = None
            self._set(future)
        else:
            self._at(self.now() + _SETTLE_S / 2, "ask_quiet_again")

    def _do_ask_quiet_again(self, _):
        if self._finish is not None:
            self._ask_quiet()

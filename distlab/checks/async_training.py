"""Exercise 15: a parameter server with bounded staleness, and its message loop.

The server is a state machine without messages: after each call it is compared with a
reference model, `Twin`. The loop runs behind a relay on a virtual clock where messages
take no time, so that a worker waits only as long as the bound requires.
"""

import math
import re
from heapq import heappop, heappush
from itertools import zip_longest
from random import SystemRandom

import torch

from distlab import show
from distlab.checks import kit
from distlab.checks.kit import Hint, Wrong, check
from distlab.checks.kit.tables import by_key
from distlab.errors import Deadlock
from distlab.links import Link
from distlab.simulated import Uniform

WITHOUT = kit.modules_of("distlab.train.asynchronous")
FABRIC = Uniform(Link(latency_s=0.0, bytes_per_s=math.inf))
RATE, LENGTH = 0.5, 3  # halves of whole numbers add up exactly
NO_MORE, NOT_FINITE, END = -1, ("nan", "inf"), math.inf
REFUSED = "a ValueError naming it"
SCENES = {  # what workers do before gradients in random order; worker 0 is the slowest
    "the slowest dies": "ahead1 leave0",
    "two die at once": "ahead2 leave0 leave1",
    "one that waits dies": "ahead1 leave1 leave1 push0",
    "a dead worker's gradient comes late": "push0 leave0 late0 ahead1 late0",
    "a gradient is not finite": "ahead2 nan0 inf0 push1 leave0",
}


class Twin:
    """A minimal reference model of a server.

    clocks: worker -> its gradients. held: those that wait. given: worker -> version.
    """

    def __init__(self, values, bound, workers):
        self.values, self.bound = torch.tensor(values, dtype=torch.float64), bound
        self.version, self.ages, self.held = 0, [], set()
        self.clocks, self.given = dict.fromkeys(workers, 0), dict.fromkeys(workers, 0)

    def after(self, kind, worker, version, gradient):
        """Return the state after a call; only leave and push change anything."""
        if kind == "leave":
            self.clocks.pop(worker, 0)
            self.held.discard(worker)
        elif kind == "push":
            self.ages.append(self.version - version)
            self.values = self.values - RATE * torch.tensor(gradient)
            self.version += 1
            self.clocks[worker] += 1
            self.held.add(worker)
        most = min(self.clocks.values(), default=0) + self.bound
        ready = sorted(w for w in self.held if self.clocks[w] <= most)
        self.held -= {*ready}
        self.given |= dict.fromkeys(ready, self.version)
        return _state(REFUSED if kind in NOT_FINITE else ready, self)


def _state(returned, server):
    state = {"version": int(server.version), "values": server.values.tolist()}
    return {"returned": returned, "ages": [int(age) for age in server.ages]} | state


@check("{} workers, bound {}")
def correct(server, n, bound):
    """Check gradients in random order: the values, their ages, the released workers."""
    _follow(server, n, bound, "")


@check("{}: {} workers, bound {}")
def robust(server, scene, n, bound):
    """Check workers that die at bad moments, and gradients that must not be applied."""
    _follow(server, n, bound, SCENES[scene])


def _follow(server, n, bound, scene):
    draw, values = SystemRandom(), kit.draws(1, LENGTH)[0]
    workers = draw.sample(range(10, 100), n)
    twin, calls, described, rows = Twin(values, bound, workers), [], [], []

    def call(kind, worker):
        gradient = kit.draws(1, LENGTH)[0]
        if kind in NOT_FINITE:
            gradient[draw.randrange(LENGTH)] = float(kind)
        calls.append((kind, worker, twin.given[worker], gradient))
        described.append(
            f"Before it: clocks {twin.clocks}, waiting {twin.held or 'none'}."
        )
        rows.append(twin.after(*calls[-1]))

    for kind, place in re.findall(r"(\w+?)(\d)", scene):
        if kind == "ahead":  # all from there on push until the bound stops them
            for worker in workers[int(place) :] * (bound + 1):
                call("push", worker)
        else:
            call(kind, workers[int(place)])
    for _ in range(12 * n):
        free = [worker for worker in twin.clocks if worker not in twin.held]
        call("push", draw.choices(free, [1 + each % 7 for each in free])[0])
    for worker in [*twin.clocks] * bool(scene):
        call("leave", worker)
    given = values, bound, workers, calls
    mine = kit.call(_rows, server, *given, without=WITHOUT)
    for k, (right, yours) in enumerate(zip_longest(rows, mine)):
        if right != yours:
            raise _differs(calls[: k + 1], described[k], right, yours)


def _rows(server, values, bound, workers, calls):
    """Return the state of the learner's server after each call, as plain data."""
    values, rows = torch.tensor(values, dtype=torch.float64), []
    server = kit.called(server, values, RATE, bound, list(workers))
    for kind, worker, version, gradient in calls:
        push = version, torch.tensor(gradient, dtype=torch.float64)
        call, *more = [server.leave] if kind == "leave" else [server.push, *push]
        try:
            returned = sorted(map(int, call(worker, *more)))
        except NotImplementedError:
            raise
        except Exception as error:
            returned = f"{type(error).__name__}: {error}"
            if isinstance(error, ValueError) and str(worker) in str(error):
                returned = REFUSED
        rows.append(_state(returned, server))
        if type(returned) is str and kind not in NOT_FINITE:
            break
    return rows


def _differs(calls, described, right, yours):
    """Return `Wrong` with the difference after the last of these calls."""
    kind, worker, version, _ = calls[-1]
    call = f"leave({worker})" if kind == "leave" else f"push({worker}, {version}, ...)"
    call += {"late": ", which has left", "nan": ", NaN", "inf": ", inf"}.get(kind, "")
    found, said = f"Call {len(calls)}: {call}\n{described}\n", str(yours["returned"])
    facts = {name: right[name] != yours[name] for name in right}
    if said[0] != "[":
        found += f"It raised {said}.\n"
    elif kind not in NOT_FINITE:
        asked, got = {*right["returned"]}, {*yours["returned"]}
        facts |= {"missing": asked - got, "extra": got - asked}
        facts["own"] = worker in asked ^ got
        facts["left"] = got & {call[1] for call in calls if call[0] == "leave"}
    table = by_key(("after it", "expected", "yours"), right, yours)
    return Wrong(found + table, kind=kind, said=said, **facts)


def worker(comm, gradients):
    """Run a worker of the server on rank 0; return the messages from the server.

    gradients: (seconds, numbers) of each. After the last one the worker leaves.
    """
    message, got = torch.zeros(LENGTH + 1, dtype=torch.float64), []
    for work in [*gradients, None]:
        comm.recv(message, 0)
        got.append(message.tolist())
        if message[-1] == NO_MORE:
            break
        if work is None:
            message[-1] = NO_MORE
        else:
            with comm.work("gradient", seconds=work[0]):
                message[:-1] = torch.tensor(work[1])
        comm.send(message, 0)
    return got


@check("{} workers, bound {}, {} updates, {}")
def efficient(functions, n, bound, updates, leaves):
    """Check that the loop receives from any worker, and none waits needlessly."""
    values, plans = kit.draws(1, LENGTH)[0], []
    for place in range(n):  # the first worker is four times slower
        nanos = kit.draws(1, updates + 1, 10**9, 2 * 10**9)[0]
        times = [each * (1e-9 if place else 4e-9) for each in nanos]
        plans.append(list(zip(times, kit.draws(updates + 1, LENGTH), strict=True)))
        if leaves == "all leave" or (leaves == "the slowest leaves" and not place):
            del plans[place][2 - place % 3 :]
    how = {"args": (bound, updates), "fabric": FABRIC, "without": WITHOUT}
    report = kit.on_ranks(_ranks, functions, [values, *plans], **how)
    twin, rows = Twin(values, bound, range(1, n + 1)), []
    for own, ideal in _answers(twin, plans, updates).items():
        ends = [event.end for event in report.trace.of(own, "recv")] if own else [END]
        yours = map(_answer, ends, report.results[own])
        pairs = zip_longest(ideal, yours, fillvalue=(END, "none", []))
        rows += [(own, k, *pair) for k, pair in enumerate(pairs, start=1)]
    rows = [row for row in rows if row[2] != row[3]]
    if rows:
        own, k, *both = min(rows, key=lambda row: min(row[2][0], row[3][0]))
        name = f"answer {k} to worker {own}" if own else "the server in the end"
        late, stops = both[1][0] - both[0][0], NO_MORE in (both[0][1], both[1][1])
        names = (
            ("at, s", "version", "values")
            if own
            else ("version", "values, pushed versions")
        )
        named = (dict(zip(names, x[not own :], strict=True)) for x in both)
        table = by_key((name, "expected", "yours"), *named)
        picture = show.timeline(report.trace, "Your run")
        pushed = not own and both[0][1] == both[1][1]  # as many, of other versions
        ends = {"ends": stops or not own, "pushed": pushed}
        raise Wrong(table, picture=picture, late=late, **ends)


def _ranks(comm, functions, bound, updates, own):
    if comm.rank:
        return worker(comm, own)
    values, workers = torch.tensor(own, dtype=torch.float64), range(1, comm.world_size)
    server, versions = functions[0](values, RATE, bound, list(workers)), []
    push = server.push
    server.push = lambda *given: versions.append(int(given[1])) or push(*given)
    kit.called(functions[1], comm, server, updates)
    return [[*server.values.tolist(), *versions, server.version]]


def _answers(twin, plans, updates):
    """Return the messages of an ideal loop to each worker, and rank 0's final state."""
    now, ready, arrivals = 0.0, [*twin.clocks], []
    answers, to_do = {own: [] for own in ready}, [[*plan, None] for plan in plans]
    pushed = []
    while True:
        over, values = twin.version >= updates, twin.values.tolist()
        for own in ready:
            version = NO_MORE if over else twin.version
            answers[own].append(_answer(now, [*values, version]))
            if not over:
                work = to_do[own - 1].pop(0)
                heappush(arrivals, (now + (work[0] if work else 0.0), own, work))
        if not arrivals:
            return answers | {0: [_answer(END, [*values, *pushed, twin.version])]}
        now, own, work = heappop(arrivals)
        kind = "leave" if not work else "late" if over else "push"
        given = twin.given[own], work and work[1]
        pushed += given[:1] * (kind == "push")
        ready = twin.after(kind, own, *given)["returned"] + [own] * (kind == "late")
        if twin.version >= updates:
            ready, twin.held = ready + sorted(twin.held), set()


def _answer(at, message):
    *values, version = message
    return round(at, 3), int(version), "any" if version == NO_MORE else values


# fmt: off
HINTS = [
    Hint(lambda f: isinstance(f["failure"], Deadlock), [
        "In the end each worker that has not left is told -1, once. Which one still "
        "waits: one that computed at the last update, or one that the bound held back?",
        "After the last update answer all who wait; then receive from each of the "
        "others once more, and answer."]),
    Hint(lambda f: f["pushed"], [
        "After the values the table has the versions that push was given. Which "
        "element of a worker's message is the one that its gradient was computed on?",
        "A message has the gradient first, and the version last. Print one as it comes."
        ]),
    Hint(lambda f: f["late"] > 0, [
        "The worker waits in vain. Was its message there, and the server did something "
        "else? Which call takes the next message, whoever sends it?",
        "push and leave return who goes on now: answer those before you wait again. A "
        "version of -1 from a worker is server.leave(worker)."]),
    Hint(lambda f: f["late"] < 0 or f["ends"], [
        "Answer those whom push and leave return, until `updates` gradients were "
        "applied. Those that come after that are answered with -1, and not applied.",
        "Compare server.version with `updates` before each call of push. Once they "
        "are equal, the last element of every answer is -1, and what arrives is not "
        "given to push."]),
    Hint(lambda f: f["late"] == 0, [
        "Send the values and the version as they are when you send. One buffer serves "
        "for what comes and what goes: when is it filled?",
        "Look at the lines that copy server.values and server.version into the "
        "message. They must run before each send, because recv_any has filled the "
        "same tensor since."]),
    Hint(lambda f: "NoneType" in f["said"], [
        "push and leave return a list of workers, [] if none goes on.",
        "Follow every way to the end of push and of leave, also that of a worker "
        "that has left. A function that ends without a return returns None."]),
    Hint(lambda f: "IndexError" in f["said"], [
        "Workers have the numbers in `workers`, and those need not begin at 0.",
        "Search for brackets with a worker's number in them. A list has places 0, 1, "
        "2; a dict made from `workers` has the workers themselves as keys."]),
    Hint(lambda f: "empty" in f["said"], [
        "The last worker has left, and there is no slowest one any more.",
        "Search for min( and max( over the clocks. At which line of leave can the "
        "clocks be empty, and which argument of min says what it then returns?"]),
    Hint(lambda f: f["kind"] == "late" or "KeyError" in f["said"] or f["left"], [
        "A worker that has left takes no part: it is not answered, its late gradient "
        "is not applied, and it may be reported as dead twice.",
        "Is the worker still one of yours? Is it still among those who wait?"]),
    Hint(lambda f: f["kind"] in NOT_FINITE, [
        "Refuse what is not finite with a ValueError that says the worker's number, "
        "before anything changes: torch.isfinite(gradient).all().",
        "In push, write down the order of the lines: the test, ages, values, "
        "version, clock. Which of them have run when the ValueError is raised? The "
        "message needs the worker's number, too."]),
    Hint(lambda f: f["ages"] and not f["version"], [
        "An age is how many updates came between: the version that a gradient is "
        "applied to, less the one that it was computed on.",
        "Look at the line that appends to `ages`: it is a difference of self.version "
        "and the argument `version`. Does it stand before or after the line that "
        "adds 1?"]),
    Hint(lambda f: f["kind"] == "leave" and f["missing"], [
        "The slowest worker may be the one that left. Who waited for it?",
        "leave removes a clock, and the smallest clock may be larger then. Which "
        "test does push make at its end, and where does leave make the same one?"]),
    Hint(lambda f: f["missing"] and not f["own"], [
        "This gradient came from the slowest worker, so others may go on, too. After "
        "each gradient look at all who wait.",
        "Look at what push returns: is it decided for `worker` alone? Keep the "
        "waiting workers in a set, and test each of them against the smallest clock "
        "of now."]),
    Hint(lambda f: f["missing"] or f["extra"], [
        "Count each worker's gradients, this one included. A worker goes on if its "
        "count is at most `bound` above the smallest count of all workers.",
        "Workers that wait count, too; versions and ages don't say who is ahead. At "
        "the bound itself a worker goes on."]),
    Hint(lambda f: f["values"] or f["version"], [
        "Each gradient is one update: values less rate times gradient, and the "
        "version one more.",
        "Look at the lines that change values and version. Is the rate in the first, "
        "with a minus? Do both run for every gradient, however old it is and whoever "
        "waits?"]),
]

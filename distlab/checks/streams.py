"""Exercise 08: an operator with barriers and keyed state, which is killed.

Scripts are followed first, in a process: what an operator with two inputs sends, event
by event. A row is a script, what is sent, and the name of its hint. Then whole jobs
run, and what the sink commits is compared with a plain count. A result is on time if it
leaves when the last message that it needs could be processed.
"""

import random
import re
from collections import Counter
from copy import deepcopy
from functools import partial
from itertools import pairwise

from distlab.checks import kit
from distlab.checks.kit import Hint, Wrong, called, check
from distlab.faults import Crash
from distlab.network import Client, Delivery
from distlab.trace import Call

WITHOUT = kit.modules_of("distlab.agree") + kit.modules_of("distlab.agree.stream")
_SHOWS = ("committed", "seen", "sent", "complete")
_WINDOW_S, _KEYS, _END = 10, "abcdef", float("inf")
_TOKEN = re.compile(r"(~?)(\d)(?:([a-z])(\d*)|@(\d+)|(\|))")
_SAID = ("Ack", "Barrier")
_random = random.SystemRandom()


@check("step 1: {}")
def aligns(make, case):
    """Check windows and barriers, and that sources may crash."""
    _judge(_ALIGNS[case], make)


@check("step 2: {}")
def survives(make, case):
    """Check that the operator may be killed between any two events."""
    _judge(_SURVIVES[case], make)


@check("step 3: {}")
def saves_time_and_space(make, case):
    """Check that results are on time, and that the disk does not fill."""
    _judge(_SAVES[case], make)


def _judge(case, make):
    if type(case) is str:
        _follow(case, make)
        return
    with kit.on_nodes(make, 6, without=WITHOUT, shows=_SHOWS) as nodes:
        case(nodes)


# scripts


def _follow(text, make):
    rows = [re.split(r" => |  ", row) for row in text.split("\n") if row]
    scripts = [(script, name == "durable") for script, _, name in rows]
    sent = kit.call(_played, make, scripts, without=WITHOUT)
    for (script, right, name), yours in zip(rows, sent, strict=True):
        if yours != right:
            found = f"An operator with inputs 1 and 2:\n    {script}\n    expected  "
            raise Wrong(f"{found}{right}\n    yours     {yours}", rule=name)


def _played(make, scripts):
    """Return the messages of an operator in each script, as text."""
    said = []
    for script, acks in scripts:
        try:
            said.append(called(_Script, make, script).text(acks))
        except Exception as error:
            if type(error) is not NotImplementedError:  # a hint knows its words
                error.args = (f"{error}. Script: {script}",)
            raise
    return said


class _Script:
    """An operator, its disk, and the messages that it has sent.

    last: the highest number of a checkpoint. base: that at the start of the attempt.
    """

    def __init__(self, make, script):
        self.make, self.kinds, self.sent = make, make.__new__.__globals__, []
        self.durable, self.written, self.tokens = {}, {}, []
        self.attempt = self.last = self.base = 0
        self.kill()
        self.deploy(0)
        words = iter(script.split())
        for word in words:
            if word in ("deploy", "complete"):
                getattr(self, word)(int(next(words)))
            elif word in ("kill", "sync", "end"):
                getattr(self, word)()
            else:
                self.input(*_TOKEN.fullmatch(word).groups())

    def kill(self):
        self.written, self.tokens = deepcopy(self.durable), []
        self.node = self.make(3, (0, 1, 2))
        self.take(self.node.on_start(deepcopy(self.durable)))

    def sync(self):
        while self.tokens:
            self.durable = deepcopy(self.written)
            self.take(self.node.on_synced(self.tokens.pop(0)))

    def deploy(self, checkpoint):
        self.attempt, self.base, self.barriers = self.attempt + 1, self.last, [0] * 3
        self.give(0, "Deploy", self.attempt, checkpoint)

    def complete(self, checkpoint):
        self.give(0, "Complete", self.attempt, checkpoint)

    def end(self):
        for source in (1, 2):
            self.give(source, "Records", self.attempt, (), _END)

    def input(self, old, source, key, time, mark, barrier):
        source, attempt = int(source), self.attempt - bool(old)
        if barrier:
            self.barriers[source] += not old
            number = self.base + self.barriers[source]
            self.last = max(self.last, number)
            self.give(source, "Barrier", attempt, number)
        else:
            rows = ((int(time or 5), key),) if key else ()
            self.give(source, "Records", attempt, rows, int(mark or 0))

    def give(self, sender, kind, *fields):
        self.take(self.node.on_message(sender, self.kinds[kind](*fields)))

    def take(self, effects):
        for effect in effects or ():
            kind, (name, *value) = type(effect).__name__, deepcopy([*effect])
            if kind == "Sync":
                self.tokens.append(name)
            elif kind == "Save":
                (self.written[name],) = value
            elif kind == "Send" and name == 0:
                self.sent.append(*value)

    def text(self, acks):
        words, results = [], []
        for message in [*self.sent, None]:
            kind = type(message).__name__
            if kind == "Result":
                many = "" if message.count == 1 else message.count
                results.append(f"{message.key}{many}")
            elif kind != "Ack" or acks:
                own = [f"ack {message[1]}" if kind == "Ack" else "|"]
                words, results = words + sorted(results) + own * (kind in _SAID), []
        return " ".join(words) or "nothing"


# jobs


def _log(windows, slow=1):
    """Return a log, drawn at random: (seconds to wait, rows, watermark) each."""
    entries, mark = [], 0
    while mark < windows * _WINDOW_S:
        before, mark = mark, mark + _random.randint(2, 8)
        times = sorted(_random.choices(range(before, mark), k=_random.randint(1, 4)))
        rows = tuple((time, _random.choice(_KEYS)) for time in times)
        entries.append((_random.uniform(0.004, 0.02) * slow, rows, mark))
    return *entries, (0.01, (), _END)


def _run(nodes, logs, what="", lags=None, faults=(), **how):
    """Return the run of a job whose sink has committed the true counts, or raise."""
    lags = lags or [0.0] * (len(logs) - 1) + [0.03]
    given = [Call("open", None, pair) for pair in zip(lags, logs, strict=True)]
    clients = [Client(at, [call], timeout_s=9) for at, call in enumerate(given, 1)]
    wait = Call("wait", None, sum(map(len, logs)))
    clients.append(Client(0, [wait], 0.01, timeout_s=20))
    how = {"delivery": Delivery((0.001, 0.015), ordered=True), "faults": faults} | how
    run = nodes.simulate(len(logs) + 2, clients, **how)
    rows = [row for log in logs for _, rows, _ in log for row in rows]
    truth = Counter((time // _WINDOW_S * _WINDOW_S, key) for time, key in rows)
    about = f"{len(logs)} inputs; node {len(logs) + 1} is the operator"
    about = "\n    ".join([about, *map(str, faults)])
    places = Counter(result[:2] for result in run.nodes[0].committed)
    counts = {result[:2]: result[2] for result in run.nodes[0].committed}
    ended = run.history[-1].outcome == "ok"
    for at in sorted(truth.keys() | places.keys()):
        if (ended or at in places) and (places[at] != 1 or counts[at] != truth[at]):
            found = [one[2] for one in run.nodes[0].committed if one[:2] == at]
            found = f"Window and key {at}: committed {found}, the count is {truth[at]}."
            _fail(run, f"{about}\n{found}", wrong=what)
    if not ended:
        done = f"checkpoint {run.nodes[0].complete} is the last that is complete"
        _fail(run, f"{about}\nThe job does not end: {done}.", stalled=what)
    return run


def _fail(run, found, **facts):
    raise Wrong(found, picture=kit.Played(run.trace, "The run that failed"), **facts)


def _counted(sources, nodes):
    for last in range(sources):
        lags, logs = [0.0] * sources, [_log(6) for _ in range(sources)]
        lags[last] = 0.04
        _run(nodes, logs, "job", lags, seed=_random.getrandbits(32))


def _sources_crash(nodes):
    for sources in (2, 3, 4):
        faults = []
        for k, node in enumerate(_random.choices(range(1, sources + 1), k=2)):
            at_s = _random.uniform(0.06, 0.14) + 0.12 * k
            faults.append(Crash(node, at_s, at_s + 0.02, "unsynced"))
        logs = [_log(10) for _ in range(sources)]
        _run(nodes, logs, "crash", faults=faults, seed=_random.getrandbits(32))


def _kills(sources, again, nodes):
    """Kill the operator between two of its events; again: and then any task."""
    logs, how = [_log(5) for _ in range(sources)], {"sync_s": 0.02}
    how["seed"] = _random.getrandbits(32)
    run, me = _run(nodes, logs, "job", **how), sources + 1
    events = sorted({event.start for event in run.trace.events if event.rank == me})
    between = [(a + b) / 2 for a, b in pairwise(events) if a > 0.05]
    for k in range(parts := min(12, len(between))):  # one kill in each part of the run
        first, after = (len(between) * part // parts for part in (k, k + 1))
        at_s = between[_random.randrange(first, after)]
        loses = _random.choice(("", "unsynced"))
        faults = [Crash(me, at_s, at_s + 0.01, loses)]
        if again:
            node, at_s = _random.randint(1, me), at_s + _random.uniform(0.02, 0.2)
            faults.append(Crash(node, at_s, at_s + 0.01, loses))
        _run(nodes, logs, "kill", faults=faults, **how)


# time and space


def _due(sent, delay_s):
    """Return, for each source, (seconds, watermark) of what could be processed, when.

    sent: of each source (seconds, watermark), None for a barrier, in order. An input is
    blocked from its barrier until those of all inputs have come.
    """
    queues, now, marks = list(map(list, sent)), [0.0] * len(sent), [[] for _ in sent]
    while any(queues):
        for source, queue in enumerate(queues):
            mark = 0
            while queue and mark is not None:
                sent_s, mark = queue.pop(0)
                now[source] = max(now[source], sent_s + delay_s)
                marks[source] += [] if mark is None else [(now[source], mark)]
        now = [max(now)] * len(sent)
    return marks


def _on_time(sources, lag_s, sync_s, nodes):
    """Check that each result leaves as soon as what it needs can be processed."""
    delay_s, lags = 0.01, [0.0] * (sources - 1) + [lag_s]
    how = {"delivery": Delivery((delay_s, delay_s), ordered=True), "sync_s": sync_s}
    logs = [_log(12, 1 + 3 * (at == sources)) for at in range(1, sources + 1)]
    run = _run(nodes, logs, "job", lags, **how)
    marks = _due([run.nodes[at].sent for at in range(1, sources + 1)], delay_s)
    for start, key, _, seen_s in run.nodes[0].seen:
        enough = [[s for s, mark in one if mark >= start + _WINDOW_S] for one in marks]
        late_s = seen_s - delay_s - max(map(min, enough))
        if late_s > 0.001:
            found = f"{sources} inputs; the last one's barrier takes {lag_s} s, a Sync "
            found += f"{sync_s} s.\nThe result of key {key!r} in the window from "
            found += f"{start} s left {late_s:.3f} s late."
            _fail(run, found, late=True, disk=sync_s)


def _space(nodes):
    used = []
    for windows in (8, 100):
        run = _run(nodes, [_log(windows), _log(windows)], "job")
        used.append(sum(map(len, map(_as_bytes, run.saved[-1].values()))))
    if used[1] > 2 * used[0] + 400:
        found = f"On the disk: {used[0]} bytes after 8 windows, {used[1]} after 100."
        _fail(run, found, space=used)


def _as_bytes(value):
    return b"".join(value) if type(value) is list else value


# fmt: off
_ROWS_1 = """
1a 2b 1a7 end => a2 b  count
1a 2b 1@20 => nothing  watermark
1a 2b 1@20 2@9 => nothing  watermark
1a 2b 1@20 2@10 => a b  watermark
1a 1a15 2c15 1@10 2@12 => a  watermark
1a deploy 0 1b end => b  fresh
1a 1| 2| 1b 2c deploy 1 end => | a  copy
1a 1| 2| 1b deploy 1 1c 2d deploy 1 end => | a  copy
1a 1| 1b 2c 2| end => | a b c  release
1a 1| 1b 2c 2| deploy 1 end => | a c  align
1a 1| 2c 1b 2d 2| deploy 1 end => | a c d  align
1a 2| 2b 1c 1| deploy 1 end => | a c  align
1a 2@10 1| 1@10 2| => | a  forward
1a 1@10 1| 2@10 2| => a |  forward
1a 1| 1b deploy 0 1c 2d 1| 2| end => | c d  fresh
1a 1| 2| 1@10 deploy 1 2@10 => |  fresh
1a 1@10 1| 2| deploy 1 2@10 => | a  marks
1a 1| 1b 1| 1c 2d 2| 2e deploy 1 end => | a d  again
1a 1| 1b 1| 1c 2d 2| 2e 2| end => | | a b c d e  again
1a 1| 1b 1| 1c 2d 2| 2e 2| deploy 2 end => | | a b d e  again
1a 1| 2| deploy 1 ~1b ~2| 1c 2d 1| 2| end => | | a c d  zombie
"""
_GIVEN_UP = " sync deploy 1 1b 1| 2|" * 4
_ROWS_2 = re.sub("(deploy|end|=>)", r"sync \1", _ROWS_1) + f"""
1a 1| 2| => |  durable
1a 1| 2| sync => | ack 1  durable
1a 1| 2| sync 1b kill deploy 1 end => | a  disk
1a 1| 2| sync kill 1b 2c deploy 1 end => | a  zombie
1a 1| 2| sync 1b 1| 2| sync kill deploy 2 end => | | a b  disk
1a 1| 2| sync 1b 1| 2| sync kill deploy 1 end => | | a  older
1a 1| 2|{_GIVEN_UP} sync kill deploy 1 end => | | | | | a  older
"""
_ROWS_3 = _ROWS_2 + """
1a 1| 2| sync complete 1 1b 1| 2| sync kill deploy 1 end => | | a  kept
1a 1| 2| sync 1b 1| 2| complete 1 sync kill deploy 2 end => | | a b  kept
1a 1| 2| sync complete 1 1b deploy 1 end => | a  kept
1a 1| 2| sync 1b 1| 2| complete 1 sync deploy 2 end => | | a b  kept
"""
_ALIGNS = {
    "scripts": _ROWS_1, "sources crash": _sources_crash,
    "two inputs": partial(_counted, 2), "three inputs": partial(_counted, 3),
    "four inputs": partial(_counted, 4)}
_SURVIVES = {
    "scripts": _ROWS_2, "sources crash": _sources_crash,
    "kills": partial(_kills, 2, False), "two kills": partial(_kills, 2, True),
    "kills with four inputs": partial(_kills, 4, True)}
_SAVES = {
    "scripts": _ROWS_3, "disk space": _space, "two kills": partial(_kills, 3, True),
    "slow barriers": partial(_on_time, 3, 0.3, 0.0),
    "slow disk": partial(_on_time, 2, 0.0, 0.3),
    "slow barriers of four inputs": partial(_on_time, 4, 0.2, 0.0)}

_BY_HAND = (
    "Follow the script in a cell of its own: `node = Aligned(3, (0, 1, 2))`, or your "
    "class of this step, then `list(node.on_message(0, Deploy(1, 0)))`, and what comes "
    "next, one by one. Print your attributes after each.")
_RULES = {
    "count": "A key has one count in each window. The window of a time begins at "
        "`time // WINDOW_S * WINDOW_S`.",
    "watermark": "A window is closed once no input can send a record for it: which of "
        "the inputs' watermarks decides, and what is that of an input that has sent "
        "none? A window from 0 ends at 10.",
    "release": "What a blocked input has sent waits, and is processed once the "
        "checkpoint is aligned. What do you do with it then?",
    "align": "The snapshot has what came before the barrier on each input, and nothing "
        "that came after it. Is it taken when the last barrier comes, before what has "
        "waited is processed? Is an input blocked whose barrier has come?",
    "forward": "The sink commits with the checkpoint what it got before the barrier. "
        "Which results belong before it, and which behind?",
    "copy": "The snapshot has changed after it was taken, or after the operator had "
        "begun from it: it shares its dictionaries with the running counts.",
    "again": "A fast input may have its next barrier among what waits. What happens if "
        "you meet it there: is the input blocked again, for what comes behind it?",
    "zombie": "The message is of an attempt that is over. Its source will send it "
        "again, so it counts for nothing now.",
    "fresh": "A new attempt begins: barriers that have come, messages that wait, "
        "counts and watermarks of the old one are all void.",
    "marks": "Input 1 has sent its watermark before the barrier, and does not send it "
        "again after the restart: what holds it?",
    "durable": "The coordinator relies on an acknowledgment, so it is sent when the "
        "disk has the snapshot: in which method do you know that?",
    "disk": "A restarted operator has only what is in `saved`. Which names did you "
        "save, and what do you make of them in on_start?",
    "older": "The last complete checkpoint may be older than the newest that you have "
        "written: one was given up, or the coordinator has not heard of it. How many "
        "snapshots does your disk hold, and which one does a new one replace?",
    "kept": "Complete n says that no checkpoint before n will be asked for. Checkpoint "
        "n itself may be, and so may later ones.",
}
HINTS = [
    *(Hint(lambda f, name=name: f["rule"] == name, [words, _BY_HAND])
      for name, words in _RULES.items()),
    Hint(lambda f: f["stalled"], [
        "The job stands still: a barrier was not forwarded, a snapshot not "
        "acknowledged, or an input is still blocked.",
        "Look for the last checkpoint in the player. Have all its barriers come? Is "
        "there a Barrier to node 0 behind them, and then an Ack? Which message should "
        "have been next?"]),
    Hint(lambda f: f["wrong"] == "kill", [
        "The operator was killed, and began again from another state than that of the "
        "last complete checkpoint.",
        "In the player, look at the last Deploy: which checkpoint does it name? Was "
        "the snapshot of that number on the disk, and durable, when it was "
        "acknowledged?"]),
    Hint(lambda f: f["wrong"], [
        "A record was counted twice, or not at all, or a window was closed too early.",
        "Take the window and key of the verdict. Which records of the player belong to "
        "it, and which event of your operator counted each? Was there a barrier just "
        "before, or a new attempt?"]),
    Hint(lambda f: f["disk"], [
        "A result waits for the disk. Acknowledging a checkpoint needs its snapshot to "
        "be durable; processing records does not.",
        "What does your operator do between the last barrier and on_synced? The state "
        "that is written is a copy."]),
    Hint(lambda f: f["late"], [
        "A result waits for a barrier that it does not need. Only an input whose own "
        "barrier has come is blocked, until the last barrier comes.",
        "In the player, find the first barrier of a checkpoint and the last. What is "
        "done with records of other inputs in between, and what right after it?"]),
    Hint(lambda f: f["space"], [
        "The disk fills with what no restart can ask for: old snapshots, or windows "
        "that are closed.",
        "Print what is on the disk at the end of your own run: `run.saved[3]`. Which "
        "number is the last complete checkpoint? Which windows are still open?"]),
    *kit.NODE_HINTS]

"""Exercise 17: a training loop that survives crashes of its machine.

The ranks, their disk and their clock are simulated in one process, so that the power
can fail at every single point of a run: before each training step, and in each disk
operation. The expected states are computed here, by one rank after another.
"""

from collections import Counter
from functools import partial
from itertools import combinations

from distlab.checks import kit
from distlab.checks.kit import Hint, Wrong, check
from distlab.launch.simulate import simulate
from distlab.links import LINKS
from distlab.simulated import Uniform

WITHOUT = kit.modules_of("distlab.train.checkpoint")
FABRIC = Uniform(LINKS["InfiniBand NDR"])
STEP_S, SYNC_S = 0.010, 0.008
STALL = 1.15  # of the time that the steps take
PRIME, FACTOR = 1_000_003, 48_271


class MachineGone(Exception):
    """A power failure, which ends every rank."""


class Platter:
    """The contents of the machine's disk, and the point of its power failure.

    cut: the number of that point, counted from 1 over all ranks; None for never.
    """

    def __init__(self):
        self.files, self.safe = {}, {}
        self.point, self.cut, self.where = 0, None, ""

    def pass_point(self, words):
        """Count a point; return True if the power fails at it."""
        self.point += 1
        if self.cut is not None and self.point >= self.cut:
            self.where = self.where or f"point {self.point}, {words}"
            return True
        return False

    def restart(self, cut=None):
        """Restore the power; of a file that was not synced half is there."""
        for name, data in self.files.items():
            self.files[name] = self.safe.get(name, data[: len(data) // 2])
        self.safe = dict(self.files)
        self.point, self.cut, self.where = 0, cut, ""


class ObservedDisk:
    """A rank's interface to the disk: names and bytes.

    Written data is durable once `sync` has returned. A rename is atomic.
    """

    def __init__(self, comm, platter):
        self._comm, self._platter = comm, platter

    def write(self, name: str, data: bytes) -> None:
        """Write a file, also over an older one of this name."""
        gone = self._platter.pass_point(f"rank {self._comm.rank} writes {name!r}")
        data = bytes(data)
        self._platter.files[name] = data[: len(data) // 2] if gone else data
        self._platter.safe.pop(name, None)
        self._go_on(gone)

    def sync(self, name: str) -> None:
        """Force a file to the disk; it takes 8 ms."""
        data = self.read(name)
        with self._comm.work(f"sync {name}", seconds=SYNC_S):
            pass
        self._do(f"syncs {name!r}")
        self._platter.safe[name] = data

    def rename(self, name: str, new: str) -> None:
        """Give a file another name, in place of the file that has it."""
        self._do(f"renames {name!r} to {new!r}")
        self._platter.files[new] = self._platter.files.pop(name)
        self._platter.safe.pop(new, None)
        if name in self._platter.safe:
            self._platter.safe[new] = self._platter.safe.pop(name)

    def remove(self, name: str) -> None:
        """Remove a file."""
        self._do(f"removes {name!r}")
        del self._platter.files[name]
        self._platter.safe.pop(name, None)

    def read(self, name: str) -> bytes:
        """Return the content of a file."""
        if name not in self._platter.files:
            raise FileNotFoundError(f"there is no file {name!r}")
        return self._platter.files[name]

    def names(self) -> list[str]:
        """Return the names of all files, sorted."""
        return sorted(self._platter.files)

    def _do(self, words):
        self._go_on(self._platter.pass_point(f"rank {self._comm.rank} {words}"))

    def _go_on(self, gone):
        if gone:
            raise MachineGone("the power is gone")


class SavedJob:
    """A training job: `steps` in all, to be saved after every `every`-th.

    A state is {"step", "model", "random"}. The model is the same on all ranks: two
    numbers, of which the second does not depend on random numbers. "random" is each
    rank's own. numbers: those of the first state, the model's and each rank's.
    """

    def __init__(self, steps, every, numbers, platter, trained):
        self.steps, self.every, self._numbers = steps, every, numbers
        self._platter, self._trained = platter, trained

    def begin(self, comm) -> dict:
        """Return the state before the first step."""
        first, second, *own = self._numbers
        return {"step": 0, "model": [first, second], "random": own[comm.rank]}

    def step(self, comm, state: dict) -> None:
        """Train one step, on all ranks together; it changes the state."""
        import numpy as np

        words = f"rank {comm.rank} begins step {state['step'] + 1}"
        if self._platter.pass_point(words):
            raise MachineGone("the power is gone")
        with comm.work("step", seconds=STEP_S):
            state["random"] = state["random"] * FACTOR % PRIME
            total, room = np.array([state["random"]]), np.zeros(1, dtype=np.int64)
            for away in range(1, comm.world_size):
                dst, src = comm.rank + away, comm.rank - away
                n = comm.world_size
                mine = np.array([state["random"]])
                total += comm.sendrecv(mine, room, dst=dst % n, src=src % n)
        state["step"] += 1
        noisy, clean = state["model"]
        noisy = (noisy * FACTOR + int(total[0])) % PRIME
        state["model"] = [noisy, (clean * FACTOR + state["step"]) % PRIME]
        if comm.rank == 0:
            self._trained.append(state["step"])


def lives(train, ranks, steps, every, cuts=()):
    """Run `train(comm, disk, job)` until it ends, with power failures, on one disk.

    ranks: the number in each run, or in all. cuts: the point of the power failure in
    each run but the last, which ends without one.

    Returns: a dict. "states": of each rank at the end. "numbers": of the first state.
    "trained": the steps of each run. "where": the points of the power failures.
    "files": names on the disk. "failure": another failure's reason, or "". Of the last
    run: "seconds", "points", "saving", the ranks that returned during a save of
    theirs, and "shared", see `_shared`.
    """
    ranks = [ranks] * (len(cuts) + 1) if isinstance(ranks, int) else list(ranks)
    numbers = kit.draws(1, 2 + max(ranks), 1, PRIME - 1)[0]
    platter, found = Platter(), {"trained": [], "where": [], "failure": ""}
    for n, cut in zip(ranks, [*cuts, None], strict=True):
        platter.restart(cut)
        found["trained"].append([])
        found["saving"] = []

        def body(comm):
            going_on = []
            comm.start = partial(_start, comm.start, going_on)
            job = SavedJob(steps, every, numbers, platter, found["trained"][-1])
            state = train(comm, ObservedDisk(comm, platter), job)
            found["saving"] += [comm.rank] * len(going_on)
            return state

        ended = simulate(body, n, args=(), fabric=FABRIC)
        found["where"] += [platter.where] if platter.where else []
        if ended.failure and not platter.where:
            found["failure"] = _reason(ended.failure.first)
        if not platter.where:
            break
    found["states"] = [_plain(value) for value in ended.values]
    found["files"], found["points"] = sorted(platter.files), platter.point
    found["shared"] = _shared(ended.board.trace().events)
    return found | {"numbers": numbers, "seconds": ended.elapsed_s}


def _start(start, going_on, save, *args, **options):
    """Start a save in the background; it is in `going_on` until it has ended."""

    def body(comm, *args, **options):
        save(comm, *args, **options)
        going_on.remove(body)

    going_on.append(body)
    return start(body, *args, **options)


def _reason(first):
    """Return the reason of a failure without a power cut."""
    if not first:
        return "the ranks wait for each other"
    facts = first.details
    return f"rank {first.rank} raised {facts.get('type')}: {facts.get('message')}"


def _shared(events):
    """Return (name, two ranks) of each file that two ranks synced at the same time."""
    syncs = [event for event in events if event.label.startswith("sync ")]
    return [
        (one.label.removeprefix("sync "), one.rank, other.rank)
        for one, other in combinations(syncs, 2)
        if one.label == other.label and one.rank != other.rank
        if one.start < other.end and other.start < one.end
    ]


def _plain(state):
    try:
        return [int(state["step"]), *map(int, state["model"]), int(state["random"])]
    except (TypeError, ValueError, KeyError, IndexError):
        return repr(state)[:100]


def _right(numbers, ranks, steps):
    """Return the expected states at the end, computed by one rank after the other."""
    random, model = numbers[2 : 2 + ranks], numbers[:2]
    for step in range(1, steps + 1):
        random = [number * FACTOR % PRIME for number in random]
        noisy, clean = model
        noisy = (noisy * FACTOR + sum(random)) % PRIME
        model = [noisy, (clean * FACTOR + step) % PRIME]
    return [[steps, *model, number] for number in random]


@check("{} ranks, {} steps, saved every {}")
def correct(train, ranks, steps, every):
    """Check power failures before each training step: the final states are the same."""
    whole = _lives(train, ranks, steps, every)
    _compare(whole, ranks, steps, every, tidy=False)
    for found in _all_cuts(train, ranks, steps, every, whole["points"]):
        if found["where"] and "begins step" in found["where"][0]:
            _compare(found, ranks, steps, every, tidy=False)


@check("{} ranks, {} steps, saved every {}, then {} ranks")
def robust(train, ranks, steps, every, then):
    """Check repeated failures at any point of a save, and another number of ranks."""
    whole = _lives(train, ranks, steps, every)
    _compare(whole, ranks, steps, every)
    points = whole["points"]
    for found in _all_cuts(train, ranks, steps, every, points):
        _compare(found, ranks, steps, every)
    for cuts in zip(*kit.draws(3, 12, 1, points), strict=True):
        _compare(_lives(train, ranks, steps, every, cuts), ranks, steps, every)
    for cut in kit.draws(1, 6, points // 2, points)[0]:
        sizes = [ranks, then]
        _compare(_lives(train, sizes, steps, every, [cut]), sizes, steps, every)


@check("{} ranks, {} steps, saved every {}")
def efficient(train, ranks, steps, every):
    """Check that saves run in the background, with a power failure at every point."""
    whole = _lives(train, ranks, steps, every)
    _compare(whole, ranks, steps, every, behind=True)
    limit = STALL * steps * STEP_S + 4 * SYNC_S
    if whole["seconds"] > limit:
        took, least = 1e3 * whole["seconds"], 1e3 * steps * STEP_S
        raise Wrong(
            f"It took {took:.0f} ms on the virtual clock, of which the steps need "
            f"{least:.0f} ms. Possible: {1e3 * limit:.0f} ms.",
            stall=True,
        )
    for found in _all_cuts(train, ranks, steps, every, whole["points"]):
        _compare(found, ranks, steps, every, behind=True)


def _lives(train, *args):
    return kit.call(_live, train, *args, without=WITHOUT)


def _live(train, *args):
    return lives(train, *args)


def _all_cuts(train, ranks, steps, every, points):
    return kit.call(_each_cut, train, ranks, steps, every, points, without=WITHOUT)


def _each_cut(train, ranks, steps, every, points):
    return [lives(train, ranks, steps, every, [cut]) for cut in range(1, points + 1)]


def _compare(found, ranks, steps, every, behind=False, tidy=True):
    """Raise if a run did not end with the expected states, steps and files."""
    sizes = [ranks] if isinstance(ranks, int) else ranks[: len(found["trained"])]
    when = "".join(f"The power went at {where}.\n" for where in found["where"])
    facts = {"cut": bool(found["where"]), "resized": len(set(sizes)) > 1}
    if found["failure"]:
        raise Wrong(f"{when}Then {found['failure']}.", broken=found["failure"], **facts)
    _compare_states(found, sizes, steps, when, facts)
    _compare_steps(found, steps, when, every, every * (2 if behind else 1))
    if found["saving"]:
        raise Wrong(
            f"{when}Rank {found['saving'][0]} returned while a save of its went on.",
            saving=True,
        )
    for name, *two in found["shared"]:
        said = "Ranks {} and {} write {!r} at the same time.".format(*two, name)
        raise Wrong(when + said, shared=True)
    room = 2 * (max(sizes) + 1)
    saved = len(found["trained"][-1]) >= every  # and so could remove old files
    if tidy and saved and len(found["files"]) > room:
        files = ", ".join(found["files"][:12])
        raise Wrong(f"{when}In the end these files are there: {files}.", left=True)


def _compare_states(found, sizes, steps, when, facts):
    """Raise if the final states are not what they are without a power cut."""
    right, mine = _right(found["numbers"], sizes[-1], steps), found["states"]
    old = [state[3] for state in _right(found["numbers"], sizes[0], steps)]
    if facts["resized"]:  # random numbers can't come back: what does without them
        right = [[steps, right[0][2]]] * sizes[-1]
        whole, mine = mine, [s if isinstance(s, str) else [s[0], s[2]] for s in mine]
    if mine != right:
        rank = next(r for r in range(sizes[-1]) if mine[r] != right[r])
        raise Wrong(
            f"{when}Rank {rank} ends with {mine[rank]}, and without a power cut with "
            f"{right[rank]}: step, model, random number.",
            state=mine[rank],
            random=mine[rank][0:3:2] == right[rank][0:3:2],
            **facts,
        )
    goes_on = found["trained"][-1][:1] != [1]
    if facts["resized"] and goes_on and any(state[3] in old for state in whole):
        rank = next(r for r in range(sizes[-1]) if whole[r][3] in old)
        found = f"Rank {rank} goes on with random numbers of a rank before the cut."
        raise Wrong(when + found, **facts)


def _compare_steps(found, steps, when, every, lost):
    """Raise if the steps of all runs are not all steps, or one went on elsewhere.

    lost: the most steps that each power failure may cost.
    """
    counts = Counter(step for life in found["trained"] for step in life)
    if left := sorted({*range(1, steps + 1)} - {*counts}):
        raise Wrong(f"{when}Steps that job.step never trained: {left}.", skipped=True)
    again = sum(counts.values()) - len(counts)
    most = len(found["where"]) * lost
    if again > most:
        raise Wrong(
            f"{when}{again} steps were trained again; {most} may be.", again=True
        )
    for life in found["trained"][1:]:
        if life and (life[0] - 1) % every:
            found = f"The next run went on after step {life[0] - 1}, and saves are due "
            raise Wrong(f"{when}{found}after every {every} steps.", elsewhere=True)


# fmt: off
HINTS = [
    Hint(lambda f: f["skipped"], [
        "Each step from 1 to job.steps is trained by job.step(comm, state), on all "
        "ranks, in one run or another.",
        "Look at the loop of train: which line calls job.step, and from which step on "
        "does it go on after a load?"]),
    Hint(lambda f: f["elsewhere"], [
        "A save is due after steps job.every, 2 * job.every and so on, and after no "
        "others. What does your condition give for step 1, and for step job.every?",
        "Print state[\"step\"] beside each save for job.every = 2: 2, 4, 6. The state "
        "counts the step that job.step has just trained."]),
    Hint(lambda f: f["saving"], [
        "Whoever starts the job again expects its last save on the disk. What may "
        "still be on its way when your function returns?",
        "Follow the request of the last comm.start: which line waits for it?"]),
    Hint(lambda f: f["shared"], [
        "All ranks see the same files: one may write a file again that another has "
        "just synced. Which rank writes what all have in common?",
        "A rank's own file has its rank in its name. The note has none: let rank 0 "
        "write it, after a barrier."]),
    Hint(lambda f: f["resized"], [
        "Another number of ranks: a rank may find no file of its own. The model is "
        "the same in all files; random numbers begin anew, with job.begin(comm).",
        "Look at the line of load that makes this rank's file name. Store world_size "
        "with the save; where it differs, take the step and the model from a file "
        "that surely exists."]),
    Hint(lambda f: "NotImplementedError" in (f["broken"] or ""), [
        "Use the disk that the function is given, and nothing of the library.",
        "The verdict names what was called. The table above the first step has all "
        "that you may use: write, sync, rename, read, names, remove; pickle makes "
        "the bytes."]),
    Hint(lambda f: "FileNotFoundError" in (f["broken"] or "") and f["cut"], [
        "A file is asked for that was removed, or never finished. What does your load "
        "believe, and when does that become true?",
        "Remove the older save only after the new one counts."]),
    Hint(lambda f: "wait for each other" in (f["broken"] or ""), [
        "Every rank has to reach every barrier. Which branch does only one of them "
        "take?",
        "Search for comm.barrier() below an `if` or an early return. Give each "
        "rank's calls in order for one save: do all have the same number of "
        "barriers? load counts, too."]),
    Hint(lambda f: f["broken"] and f["cut"], [
        "What was read is not what was written: a file may be there by half. Which "
        "files were forced to the disk before something said that they count?",
        "write, sync, and only then rename to the name that load believes. A name that "
        "is believed must never be written to directly."]),
    Hint(lambda f: f["random"], [
        "What goes without random numbers is right, and the rest is not. Whose "
        "random numbers were loaded, and of which moment?",
        "Look at the file name in save: does it hold this rank's number, or does "
        "each rank write, or load, the file of rank 0? state['random'] must be saved "
        "after the step, not before it."]),
    Hint(lambda f: f["state"] and f["cut"], [
        "Ranks may have loaded different saves, or a state that is not of one moment. "
        "Who decides which save counts, and do all ranks have written by then?",
        "Two phases: each rank writes and syncs its file; after a barrier rank 0 "
        "writes and syncs a note, and renames it to the name that load reads."]),
    Hint(lambda f: f["state"], [
        "Without any power cut it ends wrongly. Is the state that you return the one "
        "that job.step has changed, after exactly job.steps steps?",
        "Do the loop by hand for job.steps = 3 and job.every = 2. How often is "
        "job.step called, what is state['step'] at each test, and which dict does "
        "train return?"]),
    Hint(lambda f: f["again"], [
        "More work was lost than one interval. Is there a save after every job.every "
        "steps, and does load find the newest?",
        "The verdict says where the power went. Which save was complete before it, "
        "and what does load compare to find the newest: numbers, or names as text, "
        "in which '10' comes before '9'?"]),
    Hint(lambda f: f["left"], [
        "Older saves are still there, or drafts of saves that were cut off. Remove "
        "them, once the new save counts.",
        "Look at where you call disk.remove, and on which names. It must come after "
        "the rename, on one rank only. disk.names() lists drafts, too: which names "
        "does the new save need?"]),
    Hint(lambda f: f["stall"], [
        "Training waits for the disk. comm.start(save, disk, state) goes on beside "
        "the steps; wait() for it before the next save. And what may not change "
        "meanwhile?",
        "Look at the order of three lines: wait for the last save, copy the state, "
        "start the next. The save reads the state while job.step changes it, so "
        "which object do you pass to comm.start?"]),
]

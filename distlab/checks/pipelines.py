"""Exercise 14: pipeline schedules within a memory limit, and an engine for them.

A schedule comes back as plain data and is judged here. The learner's engine executes it
on ranks behind a relay on a virtual clock, with stages that multiply by a number.
"""

from dataclasses import replace
from functools import partial
from math import prod

from distlab import show
from distlab.checks import kit
from distlab.checks.kit import Hint, Wrong, check
from distlab.errors import Deadlock, InvalidSchedule
from distlab.links import LINKS
from distlab.show.reading.pipeline_cells import PipelineCells, first_difference
from distlab.simulated import Uniform
from distlab.train import pipeline
from distlab.train.pipeline.schedule import Schedule
from distlab.train.pipeline.timing import Times, timed

WITHOUT = kit.modules_of("distlab.train.pipeline", but=("schedule", "timing"))
LINK = LINKS["InfiniBand NDR"]
CONTRACT = kit.Contract(
    forward={
        "rising": "every stage runs its forward passes from microbatch 0 to the last",
        "falling": "every stage runs its forward passes from the last microbatch to 0",
        "even first": "every stage runs the forward passes of the even microbatches "
        "first, then of the odd ones, both rising",
    },
    backward={
        "in order": "GPipe's backward passes have the order of its forward passes",
        "reversed": "GPipe's backward passes have the opposite order of its forward "
        "passes",
    },
    returned={
        "nothing": "play returns None",
        "messages": "play returns how many messages it has sent",
    },
)
SLACK, NEAR = 1.02, 0.01
SLOT = 1e-3  # seconds
EQUAL = Times(SLOT, SLOT, SLOT)
SHAPE = 3  # elements in a message


class Stage:
    """A stage of a model that multiplies by `weight`, and takes time on the clock.

    inputs: of the first stage, one for each microbatch. seconds: kind -> its duration.
    gradient: of the weight, added up so far. splits: True if `backward` leaves that to
    `weights`. outputs: microbatch -> the stage's output.
    """

    def __init__(self, comm, weight, inputs, seconds, splits=False):
        self._comm, self._weight, self._seconds = comm, weight, seconds
        self._inputs, self._splits = inputs, splits
        self._kept, self._put_off = {}, {}
        self.gradient, self.outputs = 0, {}

    def room(self):
        """Return an empty tensor for one message."""
        import torch  # here, because only ranks may load it

        return torch.zeros(SHAPE, dtype=torch.int64)

    def forward(self, microbatch, x):
        """Return a microbatch's output; x: its input, None on the first stage."""
        with self._comm.work(f"F{microbatch}", seconds=self._seconds["F"]):
            x = self.room() + self._inputs[microbatch] if x is None else x
            self._kept[microbatch] = x.clone()
            self.outputs[microbatch] = (x * self._weight).tolist()
            return x * self._weight

    def backward(self, microbatch, gradient):
        """Return the gradient of a microbatch's input; gradient: of its output.

        On the last stage gradient is None.
        """
        with self._comm.work(f"B{microbatch}", seconds=self._seconds["B"]):
            gradient = self.room() + 1 if gradient is None else gradient.clone()
            self._put_off[microbatch] = gradient
            if not self._splits:
                self._add(microbatch)
            return gradient * self._weight

    def weights(self, microbatch):
        """Add up the gradient of the weight, where `backward` has left that."""
        with self._comm.work(f"W{microbatch}", seconds=self._seconds["W"]):
            self._add(microbatch)

    def _add(self, microbatch):
        found = self._put_off.pop(microbatch) * self._kept.pop(microbatch)
        self.gradient += int(found.sum())


def beside_ideal(plan: Schedule, ideal: Schedule, contract=kit.PUBLISHED) -> str:
    """Return an ideal's headline and the first work of a schedule that differs from it.

    The rest of the ideal is the learner's to find.
    """
    order = _order(ideal.microbatches, contract)
    rows = [[(work.kind, order[work.microbatch]) for work in s] for s in ideal.stages]
    ideal = Schedule(rows, ideal.microbatches)
    cells = [PipelineCells.of(timed(each).cells(), "slot") for each in (plan, ideal)]
    said, _ = first_difference(*cells, names=("in yours", "in the ideal"))
    return f"Ideal: {cells[1].headline()}.\n{said}"


@check("{} stages, {} microbatches")
def gpipe(functions, stages, microbatches, contract=kit.PUBLISHED):
    """Check that all forward passes precede all backward passes, and the results."""
    plan = _plan(functions[0], stages, microbatches, contract)
    for number, works in enumerate(plan.stages):
        kinds = "".join(work.kind for work in works)
        if kinds != "F" * microbatches + "B" * microbatches:
            found = f"Stage {number} does {' '.join(map(str, works))}."
            raise _wrong(found, plan, EQUAL, mixed=True)
    if last := contract.get("backward"):
        order = _order(microbatches, contract)
        _check_order(plan, "B", order[:: -1 if last == "reversed" else 1])
    _play(functions[1], plan, EQUAL, contract)


@check("{} stages, {} microbatches, at most stages - s held")
def one_f_one_b(functions, stages, microbatches, contract=kit.PUBLISHED):
    """Check that stage s holds at most stages - s microbatches, with GPipe's bubble."""
    plan = _plan(functions[0], stages, microbatches, contract)
    _check_held(plan, [stages - stage for stage in range(stages)], EQUAL)
    _check_bubble(plan, pipeline.one_f_one_b(stages, microbatches), EQUAL)
    uneven = [SLOT * (1 + stage % 3 / 2) for stage in range(stages)]
    _play(functions[1], plan, Times(uneven, uneven, uneven), contract, True)


@check("{} stages, {} microbatches, F, B, W = {}, {}, {}")
def smaller_bubble(
    functions, stages, microbatches, forward, backward, weights, contract=kit.PUBLISHED
):
    """Check split B and W: at most `stages` microbatches held, 1/3 of 1F1B's bubble."""
    times = Times(SLOT * forward, SLOT * backward, SLOT * weights)
    plan = _plan(functions[0], stages, microbatches, contract)
    if not plan.splits_backward:
        raise _wrong("There is no W in this schedule.", plan, times, unsplit=True)
    _check_held(plan, [stages] * stages, times)
    target = pipeline.zero_bubble_h1(stages, microbatches)
    _check_bubble(plan, target, times, near=NEAR)
    _play(functions[1], plan, times, contract, True)


def _order(microbatches, contract):
    """Return the microbatches in the order of their forward passes."""
    rising = [*range(microbatches)]
    if contract.get("forward") == "even first":
        return rising[::2] + rising[1::2]
    return rising[:: -1 if contract.get("forward") == "falling" else 1]


def _check_order(plan, kind, order):
    for number, works in enumerate(plan.stages):
        own = [work.microbatch for work in works if work.kind == kind]
        if own != order:
            found = f"Stage {number} runs {kind} of microbatches {own}, not {order}."
            raise _wrong(found, plan, EQUAL)


def _plan(function, stages, microbatches, contract):
    """Return the learner's schedule; raise `Wrong` if it is invalid."""
    rows = kit.call(_rows, function, stages, microbatches, without=WITHOUT)
    if isinstance(rows, str) or len(rows) != stages:
        found = rows if isinstance(rows, str) else f"It returned {len(rows)} lists."
        wanted = f"Wanted: {stages} lists, one for each stage, of pairs as ('F', 0)."
        raise Wrong(f"{found}\n{wanted}", rows=True)
    try:
        plan = Schedule(rows, microbatches)
    except InvalidSchedule as error:
        described = str(error)
        raise Wrong(described[:1].upper() + described[1:], invalid=described) from None
    if contract:
        _check_order(plan, "F", _order(microbatches, contract))
    return plan


def _rows(function, stages, microbatches):
    """Return the rows as plain data, or a sentence with the invalid result."""
    returned = kit.called(function, stages, microbatches)
    try:
        return [[(str(kind), int(m)) for kind, m in row] for row in returned]
    except (TypeError, ValueError):
        return f"It returned {returned!r:.200}"


def _check_held(plan, most, times):
    held = [max(plan.held(stage)) for stage in range(len(most))]
    if any(mine > limit for mine, limit in zip(held, most, strict=True)):
        found = f"Microbatches that stages hold at most: {held}\nThe limits are: {most}"
        raise _wrong(found, plan, times, held=held)


def _check_bubble(plan, target, times, near=1e-9):
    bubble, wanted = (timed(each, times).bubble for each in (plan, target))
    if bubble > wanted + near:
        found = (
            f"The bubble is {bubble:.1%}; {wanted:.1%} is possible within the limit."
        )
        raise _wrong(found, plan, times, bubble=bubble, split=plan.splits_backward)


def _wrong(found, plan, times, **facts):
    cells = timed(plan, times).cells()
    picture = show.pipeline(cells, title="Your schedule", unit="s", memory=True)
    return Wrong(found, picture=picture, **facts)


def _play(play, plan, times, contract, on_time=False):
    """Execute a schedule on ranks; check results, messages and, if `on_time`, time."""
    p, m = len(plan.stages), plan.microbatches
    drawn = kit.draws(2, max(p, m), 2, 9)
    weights, inputs = drawn[0][:p], drawn[1][:m]
    own = []
    for rank, works in enumerate(plan.stages):
        seconds = {kind: times.of(plan, rank, kind) for kind in "FBW"}
        stage = weights[rank], [] if rank else inputs, seconds, plan.splits_backward
        own.append(([work[:2] for work in works], stage))
    how = {"fabric": Uniform(LINK), "without": WITHOUT}
    report = kit.on_ranks(_probe, play, own, **how)
    wrong = partial(_wrong, plan=plan, times=times)
    _compare(report, weights, inputs, wrong)
    sent, enough = len(report.trace.messages()), 2 * (p - 1) * m
    if sent != enough:
        raise wrong(f"They sent {sent} messages; {enough} are enough.", messages=True)
    returned = [result["returned"] for result in report.results]
    sent = [*map(report.trace.messages_sent, range(p))]
    wanted = {"messages": sent, "nothing": ["None"] * p}.get(contract.get("returned"))
    if wanted and returned != wanted:
        raise wrong(f"The ranks sent {sent} messages, and play returned {returned}.")
    alone = replace(times, communication=LINK.latency_s)
    limit = SLACK * timed(plan, alone).end + 2 * m * p * LINK.latency_s
    if on_time and report.elapsed_s > limit:
        found = f"It took {1e3 * report.elapsed_s:.1f} ms on the virtual clock; "
        found += f"this schedule can be played in {1e3 * limit:.1f} ms."
        raise wrong(found, late=True)


def _probe(comm, play, own):
    works, stage, sends, isend = own[0], Stage(comm, *own[1]), [], comm.isend
    comm.isend = lambda tensor, dst: sends.append(isend(tensor, dst)) or sends[-1]
    returned = kit.called(play, comm, [tuple(work) for work in works], stage)
    pending = sum(not request.is_completed() for request in sends)
    return {
        "pending": pending,
        "returned": returned if type(returned) is int else repr(returned)[:60],
        "gradient": stage.gradient,
        "outputs": sorted(stage.outputs.items()),
    }


def _compare(report, weights, inputs, wrong):
    """Raise if an output or a gradient is not that of the whole model."""
    product, yours = prod(weights), dict(report.results[-1]["outputs"])
    for m, x in enumerate(inputs):
        right = [x * product] * SHAPE
        if yours.get(m) != right:
            found = f"The last stage makes {yours.get(m, 'nothing')} of microbatch {m}"
            raise wrong(f"{found}; the unsplit model makes {right}.", outputs=True)
    gradients = [each["gradient"] for each in report.results]
    wanted = [SHAPE * sum(inputs) * product // weight for weight in weights]
    for rank, each in enumerate(report.results):
        if each["pending"]:
            found = f"Stage {rank} returned while {each['pending']} sends went on."
            raise wrong(found, pending=True)
    if gradients != wanted:
        found = f"Gradients of the stages: {gradients}\nof the unsplit model: {wanted}"
        raise wrong(found, gradients=True)


# fmt: off
HINTS = [
    Hint(lambda f: f["rows"], [
        "A schedule is a list with one list for each stage, and in that pairs such as "
        "('F', 0) in the order in which the stage does them. Return that.",
        "Print your result for 2 stages and 1 microbatch, and compare it with "
        "[[('F', 0), ('B', 0)], [('F', 0), ('B', 0)]]. Which bracket, or which "
        "`return`, makes the difference?"]),
    Hint(lambda f: f["mixed"], [
        "GPipe runs all forward passes first, then all backward passes.",
        "In the picture below the verdict, look for the first B with an F behind it "
        "on the same stage. Build the row of a stage from two loops, one after the "
        "other."]),
    Hint(lambda f: "and there are microbatches" in f["invalid"], [
        "No such work. Kinds are 'F', 'B' and 'W', and microbatches count from 0. With "
        "fewer of them than stages the warm-up is shorter: how long can it be?",
        "Print the warm-up of each stage, and the largest microbatch in its row, for "
        "the case in the verdict. A stage has no more forward passes than there are "
        "microbatches: which min() is missing?"]),
    Hint(lambda f: "lacks" in f["invalid"] or "twice" in f["invalid"], [
        "Each stage does F and B of every microbatch once, and W if there is one. "
        "Which loop ends too early, or overlaps another?",
        "Write down the row of the named stage for this case, and tick off the "
        "microbatches. The steady loop runs once for each B; which F are left for it "
        "after the warm-up?"]),
    Hint(lambda f: "before" in f["invalid"], [
        "On one stage F of a microbatch comes before its B, and B before its W.",
        "Look at the named stage. In a row of the steady state the F comes first in "
        "one round, and the B of an older microbatch after it: is the index of the F "
        "larger than that of the B?"]),
    Hint(lambda f: "deadlock" in f["invalid"], [
        "Stages wait for each other. How many forward passes must stage s run before "
        "its first backward pass, so that the last stage gets its first microbatch?",
        "Follow microbatch 0 to the last stage and back. Until it is back at stage s, "
        "which forward passes has stage s time for?"]),
    Hint(lambda f: f["held"], [
        "A stage holds a microbatch from its F to its last backward work, B or W. "
        "Which F runs while the stage is full?",
        "Count for one stage: +1 at each F, -1 at each last backward work. After which "
        "work is the count above the limit, and what could run there instead?"]),
    Hint(lambda f: f["unsplit"], [
        "Split the backward pass: ('B', m) is the gradient of the input, ('W', m) that "
        "of the weights, and W may come later.",
        "Cut the backward pass of each microbatch of step 2 into a B and a W, one "
        "directly after the other. That is a valid schedule; afterwards move the W "
        "later."]),
    Hint(lambda f: f["bubble"] and f["split"], [
        "The stage before waits for B, and none for W. Which W runs although a B or an "
        "F could, that another stage waits for?",
        "Put W off, stage s by s microbatches, and run it where it would idle."]),
    Hint(lambda f: f["bubble"], [
        "Look for the first hatched gap between two works of a stage. Which work could "
        "run there, or was run before something that another stage waits for?",
        "Follow one idle slot to its cause: which work on another stage ends where "
        "the slot ends? Run that work one slot earlier, in place of one that no "
        "stage waits for."]),
    Hint(lambda f: isinstance(f["failure"], Deadlock), [
        "A send ends only when the other stage asks for the message, and that one may "
        "be sending to you. Begin to send with isend, go on, and wait in the end.",
        "Look for comm.send in your engine. With isend each of two neighbours can "
        "receive while its own message waits. Collect the requests in a list; where "
        "may the loop wait for them?"]),
    Hint(lambda f: f["outputs"], [
        "An activation went astray. What arrives from the stage before belongs to the "
        "next F; each message needs room of its own, stage.room().",
        "In the picture, take the first F of stage 1. Where does its input come "
        "from, and into which tensor? Look at recv: do you call stage.room() for "
        "each message, and pass its result on to stage.forward?"]),
    Hint(lambda f: f["gradients"], [
        "Does every B get the gradient that came from the next stage, and None on the "
        "last one? Is stage.weights called for every W?",
        "Compare the first stage with a wrong gradient with the stage after it. Look "
        "at the branch of B: does recv ask the next stage, does stage.backward get "
        "what came, and is its result sent back?"]),
    Hint(lambda f: f["pending"], [
        "What isend sends must not change, nor its stage end, before the request's "
        "wait(). Keep the requests, and wait for all of them when all is done.",
        "Look at each isend: into which list does its request go? After the loop over "
        "works stands one over that list."]),
    Hint(lambda f: f["messages"], [
        "One message for each F, to the next stage, and one for each B, to the stage "
        "before. The last stage has no next one, and stage 0 none before.",
        "Count the messages of one microbatch: p - 1 on its way forward, p - 1 on "
        "its way back. Look at the tests around your sends and receives for stage 0 "
        "and for the last stage."]),
    Hint(lambda f: f["late"], [
        "The schedule is good, and your engine waits where it need not: for a message "
        "to be taken before the next work begins. Wait for sends when all is done.",
        "Look for wait() inside of the loop, and for receives that are posted before "
        "another work. A stage needs one message for its next work: receive it just "
        "before that, and nothing else."]),
]

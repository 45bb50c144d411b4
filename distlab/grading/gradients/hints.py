"""Nudges for data parallel training, the most specific observation first."""

import re

from distlab.errors import Deadlock, InvalidArgument, MessageMismatch
from distlab.grading.hints import UNKNOWN_NAME, hint_for_failure, is_stub

__all__ = [
    "CHANGED",
    "NOTHING_SENT",
    "UNASKED",
    "UNENDED",
    "hint_for_failed_training",
    "hint_for_gradient",
    "hint_for_misstep",
    "hint_for_raised",
]

CHANGED = (
    "The list of parameters is the caller's, who finds it changed afterwards. "
    "reversed(parameters) and parameters[::-1] leave it as it is."
)
NOTHING_SENT = (
    "Every rank has other samples, so what it knows of the others' gradients has to "
    "come out of an all-reduce of every bucket."
)
UNASKED = (
    "The gradients need no other message than the all-reduce of each bucket: the "
    "number of ranks and of all samples are given."
)
UNENDED = (
    "The check calls your function once in each step, and looks after it has returned. "
    "What ends the rank before that?"
)

_MISSTEPS = {
    "accumulating": "Until the last microbatch gradients only add up on their own "
    "rank. What is sent before is sent again with more in it.",
    "side": "Start all_reduce itself, comm.start(all_reduce, buffer): pack the buffer "
    "before, and take it apart after its wait().",
    "single": "One all-reduce for each parameter pays its latency each time. Pack a "
    "bucket's gradients into one buffer and reduce that.",
    "type": "A buffer has the dtype of its parameters. torch.zeros makes float32 "
    "unless you say another; torch.zeros_like(p) takes the type of p.",
    "size": "A buffer holds the gradients of the parameters of one bucket, of each as "
    "many numbers as it has, and zeros for one that has no gradient.",
    "early": "A bucket is full when each of its parameters has had its gradient from "
    "every microbatch of the step. What do you count in the hook?",
    "order": "Hooks fire in another order on other ranks, and all-reduces meet in the "
    "order of starting. A bucket that is full has to wait for those before it.",
    "repeated": "A bucket travels once in a step. What is sent at the end leaves out "
    "what the hooks have started.",
    "missing": "Every bucket travels in every step on every rank, since the others "
    "wait for it: as zeros, where no sample has used its parameters or there was none.",
    "left full": "It was full, and stayed. A gradient that fills one bucket may find "
    "the next one full already: in each hook, start as many as are.",
    "blocking": "all_reduce returns when it has ended, and so does your hook. "
    "comm.start(all_reduce, buffer) returns at once.",
    "after": "A hook that you register on a parameter is called when its gradient is "
    "there. What could be started there, while backward goes on?",
    "late": "Look in every hook whether the next bucket in turn is full now, and "
    "after it perhaps another one.",
    "waits": "A wait inside of a hook stops backward. All waits belong behind the last "
    "backward.",
    "between": "A bucket that is not started yet stands still during a wait. After the "
    "last start, and not before, wait.",
    "left": "A hook stays until its handle's remove(), and is called in the next step "
    "too, with what it knows of this one.",
    "never waits": "comm.start returns before anything has arrived. The sum is in the "
    "buffer once the request's wait() has returned.",
}

_GRADIENTS = {
    "none": "Nothing has given this parameter a gradient. Where does what the "
    "all-reduce wrote into the buffer go?",
    "zero": "This gradient is zero afterwards. Is the buffer filled with the gradients "
    "before it travels, and read after that?",
    "sum": "This is the sum of all ranks' gradients, or n times the mean. Which step "
    "is left between the all-reduce and p.grad?",
    "divided twice": "This is the right gradient divided by n once more. Who divides "
    "already?",
    "own": "This gradient is made of this rank's samples only. The all-reduce changes "
    "the buffer, and p.grad is another tensor until you copy the result back.",
    "equal microbatches": "Each loss is a mean over its samples, and here each counts "
    "the same. How much does a microbatch of 1 weigh beside one of 4?",
    "equal ranks": "Each rank counts the same here, however many samples it has. What "
    "part of all samples is a microbatch?",
    "not by total": "The gradient is larger by the number of samples: every sample "
    "counts 1/total, and averaging divides by n besides.",
    "last microbatch": "Only the last microbatch is in it. backward adds to p.grad, "
    "unless something replaces or clears it in between.",
    "of": "This is the gradient of another parameter. Are the pieces of the buffer "
    "taken out in the order in which they were put in, and did all ranks reduce the "
    "buckets in one order?",
    "parameter": "All gradients were right, and the parameters are not: something "
    "other than the optimizer changes them.",
    "?": "Compare with what it should be: the mean over the ranks, of each bucket "
    "after its all-reduce. Which samples are in what you found, and how much does each "
    "count?",
}
_GRADIENTS_OF_STARTED = {
    "own": "This gradient is made of this rank's samples only. Is the buffer read "
    "before its request's `wait` has returned? Or does the result never reach p.grad?",
    "?": "Compare with what it should be: the mean over the ranks, of each bucket "
    "after its all-reduce. Is a buffer changed or read while it is still on its way?",
}
_IN_PLACE = (
    "all_reduce works in place and returns None. comm.start takes the function, and "
    "after it the arguments that come after comm: comm.start(all_reduce, buffer)."
)
_RAISED = [
    (
        r"not the slope of the loss",
        "Only backward knows the slope of the loss at a layer, and it has another "
        "there if a parameter has changed since forward.",
    ),
    (r"'NoneType' object is not (callable|subscriptable)", _IN_PLACE),
    (r"'NoneType' object has no attribute 'split'", _IN_PLACE),
    (r"all_reduce\(\) takes \d positional arguments but", _IN_PLACE),
    (
        r"'NoneType' object has no attribute|must be Tensor, not None",
        "A parameter that no sample of this rank has used has p.grad None. The others "
        "have sums to make with it, so it counts as zero.",
    ),
    (r"^name '\w+' is not defined", UNKNOWN_NAME),
    (
        r"expected a non-empty list of Tensors",
        "None of this bucket's parameters has a gradient on this rank. The others wait "
        "for as many numbers as always: zeros, for each that has none.",
    ),
    (
        r"'(int|float)' object has no attribute 'backward'",
        "A number has no backward, and over no microbatches a sum of losses is the "
        "number 0. What does a rank do in a step in which it has none?",
    ),
    (
        r"Boolean value of Tensor|size of tensor a \(\d+\)",
        "== and `in` compare tensors number by number. To find a parameter again, use "
        "it as the key of a dict or set, or compare with `is`.",
    ),
    (
        r"a leaf Variable that requires grad",
        "This changes the parameter itself. What travels is p.grad.",
    ),
]


def hint_for_gradient(likeness: str, *, started: bool) -> str:
    """Return a nudge for a gradient that is like this instead.

    started: whether the rank has used comm.start, so that buffers were on their way.
    """
    hints = _GRADIENTS | (_GRADIENTS_OF_STARTED if started else {})
    return hints["of" if likeness.startswith("of ") else likeness]


def hint_for_misstep(kind: str) -> str:
    """Return a nudge for a `Misstep` of that kind."""
    return _MISSTEPS[kind]


def hint_for_failed_training(failure) -> str:
    """Return a nudge for a failed run of which the notes say no more."""
    if isinstance(failure, Deadlock):
        return (
            "Some ranks wait for an all-reduce that another one never begins. Does "
            "every rank make every call in every step, also without samples?"
        )
    if isinstance(failure.cause, MessageMismatch):
        return _MISSTEPS["size"]
    return hint_for_failure(failure)


def hint_for_raised(failure) -> str | None:
    """Return a nudge for one of the exceptions that training often raises, or None."""
    cause, said = failure.cause, str(failure.cause)
    if "training is locked here" in said:
        return "Borrowing is refused: the exercise is to write it."
    if "locked here" in said:
        return (
            "Call the all_reduce that your function is given, which is a ring too, and "
            "whose calls are counted."
        )
    if is_stub(cause):
        return (
            "Nothing of your own is written yet. Which gradients travel together, and "
            "what happens to the buffer after the all-reduce?"
        )
    if "for /: 'NoneType'" in said and ".grad" not in str(failure):
        return _IN_PLACE
    for pattern, hint in _RAISED:
        if re.search(pattern, said):
            return hint
    if isinstance(cause, InvalidArgument) and "contiguous" in said:
        return (
            "A buffer that travels is one flat stretch of memory; torch.cat makes one."
        )
    return None

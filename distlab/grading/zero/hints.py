"""Nudges for wrong parameters in exercise 12, the most specific observation first."""

from distlab.errors import Deadlock, MessageMismatch, RankDied
from distlab.grading.hints import hint_for_failure, is_stub

__all__ = [
    "ONLY_PARTS",
    "UNENDED",
    "hint_for_failed_training",
    "hint_for_flat",
    "hint_for_layer",
]

_FLOAT32 = (
    "A tensor on the way has fewer digits than the parameters: torch.zeros makes "
    "float32 unless told otherwise. flat.new_zeros makes what fits flat."
)
_SAID = {
    "non-leaf": "An optimizer steps tensors that nothing was computed from: make the "
    "part with detach() or clone() of a tensor without gradient.",
    "takes a list of tensors": "From what does make_optimizer make an optimizer, and "
    "what did it get from you?",
    "parameters, and was given only": "Some positions are in nobody's part: n does not "
    "divide the length, and the parts were rounded down.",
    "parameters, and was given": "Padding belongs to the parts, not to the layer: cut "
    "it off before the layer is called.",
    "does not require grad": "In backward, full and x both need requires_grad_() "
    "before the layer is called, outside of torch.no_grad().",
    "appears to not have been used": "A gradient is asked for a tensor that the layer "
    "was not called with: ask for the same full and x that you hand to it.",
    "leaf Variable that requires grad": "A tensor that requires grad is written to. A "
    "part needs no requires_grad: you put its gradient there yourself.",
    "modified by an inplace": "A tensor that backward still needs was written to. "
    "ring_reduce_scatter, for one, uses up the tensor that it is given.",
    "backward through the graph a second time": "backward went through a layer twice.",
    "attempting to assign a gradient of size": "A part and its gradient are the same "
    "positions of the padded tensor. Which of the two is padded, and which is not?",
    "same dtype": _FLOAT32,
    "NoneType": "Something is None there. Is the gradient of a part read before it is "
    "set, or after it was cleared?",
}
_FREED = (
    "Memory was freed by hand that something still uses. Is your part a view of the "
    "full tensor that you free? A clone() has memory of its own."
)
_MISTAKES = {
    "summed": "Each step is n times too long. What becomes of the ranks' gradients on "
    "their way to a part, and what would one process have, with all the data?",
    "averaged twice": "The gradients are divided by n once too often. What has the "
    "reduction done to them already?",
    "own gradient": "Each part is stepped by its owner's gradient alone. The mean over "
    "all ranks has to arrive there first, by a reduce-scatter.",
    "kept": "The step before this one is added again. Clear the gradient of the part "
    "after its step.",
    "remade": "The momentum is lost: it is in the optimizer, and a new optimizer has "
    "none. Make it once.",
    "last pass": "The gradient of the first pass is lost. A second backward before the "
    "step has to add to what is there.",
    "mean of passes": "The passes are averaged. Gradients of several passes add up.",
    "no step": "The parameters are as they were. Does the optimizer step the tensor "
    "that is gathered, and has that a .grad when it does?",
    "not told": "The optimizer has stepped a part, and nothing was sent since: all "
    "ranks have the parameters of before. After the step, who tells the others?",
    "not written": "A part was stepped, something was gathered since, and `flat` is as "
    "it was. Is the result written into `flat` itself, in place?",
    "order": "The right numbers are there at other places: in the list that "
    "ring_all_gather returns, index r is rank r's. Whose part lies where?",
}
ONLY_PARTS = (
    "A rank keeps its parts only. A slice is a view, and keeps all of the tensor that "
    "it is a slice of; so does an attribute that holds the list. Does own_part return "
    "memory of its own?"
)
UNENDED = (
    "The check calls your class step by step, and looks after each call has returned. "
    "What ends the rank before that?"
)
_TAIL = (
    "The last numbers are never trained: n does not divide the length, and the parts "
    "were rounded down. Pad, so that n equal parts hold everything."
)


def hint_for_failed_training(failure) -> str:
    """Return a nudge for a training that ended in a `WorldFailed`."""
    cause, said = failure.cause, str(failure.cause)
    if is_stub(cause):
        if "in forward" in str(failure) or "in backward" in str(failure):
            return (
                "Nothing of your own is written yet. When does a layer's full tensor "
                "have to be there, and from when on can it go?"
            )
        return (
            "Nothing of your own is written yet. Which positions are rank r's, and how "
            "many are they if n does not divide the length?"
        )
    if isinstance(failure, RankDied):
        return _FREED
    for words, hint in _SAID.items():
        if words in said:
            return hint
    if isinstance(cause, MessageMismatch):
        return "All parts must be equally long for ring_all_gather. Pad the last one."
    if "size of tensor" in said or "expanded size" in said:
        return "Two lengths do not fit. Which of the two is padded, and which is not?"
    if isinstance(failure, Deadlock):
        return (
            "Gathering and reducing are done by all ranks together. Does each rank "
            "make the same calls, in the same order?"
        )
    return hint_for_failure(failure)


def hint_for_flat(ranks: list, step: int, right: list, mistakes: dict, since) -> str:
    """Return a nudge for parameters that are wrong after this step.

    ranks: what each rank has. right: after each step, one process. mistakes: name ->
    the same with that mistake. since: the bytes that were sent after the first
    optimizer step, or None if that changed nothing.
    """
    n, wanted = len(ranks), right[step]
    for name, there in mistakes.items():
        if all(_same(own, there[step]) for own in ranks):
            return _MISTAKES[_stepped(since, n) if name == "no step" else name]
    part = -(-len(wanted) // n)
    apart = [_differ(own, wanted) for own in ranks]
    if any(number != number for own in ranks for number in own):
        return "Some are no numbers. Is a part used before anything was written to it?"
    if all(_same(own, wanted, 1e-5) for own in ranks):
        return _FLOAT32
    if not all(_same(own, ranks[0]) for own in ranks):
        kept = [
            all(place // part != rank for place in places)
            for rank, places in enumerate(apart)
        ]
        if all(kept):
            return (
                "Each rank has trained its own part, and the others' are as before: "
                "the ranks have different models now. An all-gather is missing."
            )
        return (
            "The ranks have different parameters. After a step each must have what "
            "all have: who sends the new parts to whom?"
        )
    whole = len(wanted) // n * n
    if apart[0] and min(apart[0]) >= whole:
        return _TAIL
    if _same(sorted(ranks[0]), sorted(wanted)):
        return _MISTAKES["order"]
    if step > 1:
        return (
            "The step before was right. What is left over from it: gradients, padding, "
            "an optimizer, a part that is not the one in the tensor?"
        )
    return (
        "All ranks agree, on other numbers. Follow one position: is it in the same "
        "part in the gradient, in the optimizer and in what is gathered?"
    )


def _stepped(since, n):
    """Return what became of a step after which all parameters are as before."""
    if since is None:
        return "no step"
    return "not written" if since or n == 1 else "not told"


def hint_for_layer(fault: dict, result: dict) -> str:
    """Return a nudge for what a layer was given, or forward returned, that was wrong.

    result: what that rank reported besides.
    """
    what, like = fault["what"], fault["like"]
    if _first_layer_first(fault, result["looks"]):
        return (
            "In backward layer 0 was called first. What arrives is the gradient of "
            "what the last layer returned: in which order does it go through them?"
        )
    if what != "full":
        return _for_what_goes_through(what, fault["phase"])
    if like == "remade" or result["made"] > len(result["handed"]):
        return _MISTAKES["remade"]
    if like in _MISTAKES:
        return _MISTAKES[like]
    if like == "own part":
        return (
            "A rank sees its own part, and zeros for the rest. Whatever the others own "
            "has to be gathered before the layer is called."
        )
    if like == "zeros":
        return (
            "Some positions are zero: they are in nobody's part. If n does not divide "
            "the length, n parts rounded down are too short."
        )
    if like == "stale":
        return (
            "Some positions are as before the step. If n does not divide the length, "
            "is each position in the part of somebody who steps it?"
        )
    if fault["phase"] == "backward":
        return (
            "In forward the layer had the right parameters. Is the same layer gathered "
            "for backward, and was its part written to meanwhile?"
        )
    if fault["step"] == 0:
        return "Nothing was trained yet: part and gather do not fit each other."
    return (
        "The gradients are not those of one process. Is the gradient that goes down "
        "to the layer below that of x, and does each part get its own positions?"
    )


def _for_what_goes_through(what, phase):
    """Return a nudge for a wrong input of a layer, or a wrong output of the last."""
    if what == "output":
        return (
            "forward returns what the last layer returned, and each layer works on "
            "what the one before it returned."
        )
    if phase == "backward":
        return (
            "In backward a layer works once more on the x that it had in forward. "
            "Which of the kept inputs is that of the last layer?"
        )
    return "Each layer works on what the one before it returned."


def _first_layer_first(fault, looks):
    """Return whether backward began with layer 0, before the fault or at it."""
    called = [
        look["layer"]
        for look in looks
        if look["phase"] == "backward" and look["layer"] is not None
    ]
    if fault["step"] == 0 and fault["turn"] == 0 and fault["phase"] == "forward":
        return False
    return max(called, default=0) > 0 and called[0] == 0


def _differ(own, wanted, most=1e-9):
    return [
        place
        for place, (a, b) in enumerate(zip(own, wanted, strict=True))
        if not abs(a - b) <= most * max(1.0, abs(b))
    ]


def _same(own, wanted, most=1e-9):
    return not _differ(own, wanted, most)

"""Nudges for bytes: those that are there too long or for nothing, and those sent."""

__all__ = [
    "hint_for_kept",
    "hint_for_layers_sent",
    "hint_for_little_sent",
    "hint_for_memory",
    "hint_for_sent",
    "hint_for_state",
    "hint_for_weight",
]

_KEPT = 3  # so many layers at once are no prefetch
_GATHERS_NOTHING = (
    "Backward gathers nothing: it uses full parameters that were kept since forward. "
    "Let them go there, and gather again."
)


def hint_for_memory(looks: list[dict], place: int, sent: list, unit: int) -> str:
    """Return a nudge for the first look at which too much was in use.

    looks: those of one rank, in order; `place` is that one's. sent: per rank the bytes
    of its first forward and of its backward. unit: the bytes of a whole layer.
    """
    look = looks[place]
    phase, whole, large = look["phase"], look["whole"], look["large"]
    calls = [each for each in looks[: place + 1] if each["layer"] is not None]
    first = len([each for each in calls if each["phase"] == phase]) == 1
    if first and phase in ("forward", "backward") and len(whole) + large >= _KEPT:
        return (
            "Several layers are gathered before the first of them works. Gather each "
            "one just before its own turn."
        )
    if phase == "backward" and large >= _KEPT:
        return _for_gradients(look["views"])
    if len(whole) >= _KEPT:
        return _for_kept_layers(look, calls, sent)
    if large >= _KEPT:
        return (
            "There are tensors as large as whole layers that no layer was called with: "
            "copies, or gathered pieces. Who holds them?"
        )
    if not whole and not large:
        return (
            "No whole layer is there, and many tensors as large as a layer's input. Of "
            "which passes are they, and which are still of use?"
        )
    if phase == "rest":
        return (
            "The step is over, and a whole layer is still there. Which attribute, or "
            "which list, holds it?"
        )
    return "Which names, lists or attributes hold a full tensor at that moment?"


def _for_gradients(views):
    """Return a nudge for full gradients; views: whether a .grad is a view of one."""
    if views:
        return (
            "Full gradients of several layers are in memory. What ring_reduce_scatter "
            "returns is a view of the tensor that it was given, and a view keeps all "
            "of it. What does the part's .grad have to be instead?"
        )
    return (
        "Tensors as large as full gradients of several layers are in memory, and no "
        ".grad is a view of one. Does a list or an attribute of yours hold them?"
    )


def _for_kept_layers(look, calls, sent):
    """Return a nudge for whole layers that have had their turn."""
    if look["phase"] == "backward":
        return (
            "Layers that backward is done with are still there. What keeps them: a "
            "list, or an output whose graph was never let go?"
        )
    if any(each.get("graph") for each in calls):
        return (
            "What the layers returned in forward had graphs of autograd. What does "
            "such a graph hold on to, and who needs it before backward comes?"
        )
    if _gathers_once(sent):
        return _GATHERS_NOTHING
    return (
        "Layers that have had their turn are still there. Which list or attribute "
        "holds what was gathered for them?"
    )


def _gathers_once(sent):
    """Return whether forward gathers, and backward sends no more than that."""
    return all(backward <= 1.05 * forward for forward, backward in sent)


def hint_for_layers_sent(sent: list[tuple[int, int]], once: int) -> str:
    """Return a nudge for more bytes than ZeRO 3 needs.

    sent: per rank the bytes of a forward and of its backward. once: those of one
    gathering of all layers, or of one reduce-scatter.
    """
    forward, backward = (max(each) for each in zip(*sent, strict=True))
    if max(map(sum, sent)) > 1.5 * min(map(sum, sent)):
        return "One rank sends much more than another. In ZeRO nobody is special."
    if forward > once:
        return (
            "In forward each layer is gathered once. What else is sent there, or is "
            "more gathered than the parts?"
        )
    if round(backward / once, 1) == 3:
        return (
            "Backward sends as much as three gatherings, and two are enough. Is a "
            "layer gathered once more there, or its gradient all-reduced? Of the mean "
            "gradient a rank needs its own part only: a reduce-scatter."
        )
    return (
        "Backward needs one gathering and one reduce-scatter of each layer. What else "
        "is sent there?"
    )


def hint_for_little_sent() -> str:
    """Return a nudge for layers that were used and not gathered."""
    return (
        "A layer's parameters are gathered in each forward, and again in each "
        "backward, since they are let go in between. Where do yours come from?"
    )


def hint_for_kept() -> str:
    """Return a nudge for a part that is a view of a larger tensor."""
    return (
        "A slice or a chunk is a view, and keeps all of the tensor that it is a view "
        "of. Does own_part return memory of its own?"
    )


def hint_for_weight(place: int) -> str:
    """Return a nudge for memory that the system has seen; place: of the first look."""
    if place == 0:
        return (
            "The rank is large before any layer has worked. What does your code "
            "import, or make and keep, that is no part of this rank's?"
        )
    return (
        "Seen from outside, the rank grows with each layer. What of a layer that has "
        "had its turn is still there, in whatever form: a list of numbers, an array, "
        "bytes?"
    )


def hint_for_state(result: dict, part: int, whole: int) -> str:
    """Return a nudge for too much optimizer state.

    result: what that rank reported. part: numbers that a rank owns. whole: the bytes
    of state if nothing is shared out.
    """
    if result["state"] >= 0.99 * whole:
        return (
            "The optimizer was made over all parameters, so its state is n times too "
            "large. Which part of them does this rank step?"
        )
    if result["made"] > 1:
        return "More than one optimizer was made for the same part. One is enough."
    return "The optimizer got more numbers than this rank's part has."


def hint_for_sent(sent: list[int], once: float) -> str:
    """Return a nudge for more bytes per rank than ZeRO 1 needs.

    once: what a rank sends in a reduce-scatter, or an all-gather, of everything.
    """
    if max(sent) > 1.5 * min(sent):
        return "One rank sends much more than another. In ZeRO nobody is special."
    times = round(max(sent) / once, 2)
    if times == 3:
        return (
            "That is three times (n-1)/n: an all-reduce alone is two. A rank needs the "
            "mean of its own part, and no other: that is a reduce-scatter."
        )
    if times == 4:
        return (
            "That is two all-reduces. The gradients need half of one, a "
            "reduce-scatter, and the parameters the other half, an all-gather."
        )
    return (
        "A reduce-scatter moves (n-1)/n of the tensor, and an all-gather of the parts "
        "as much. What else is sent, or are whole tensors gathered?"
    )

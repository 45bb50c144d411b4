"""Ages of gradients, from the trace of a run, and a replay of them on one model.

    256 simulated workers ─▶ trace ─▶ gradients_of ─▶ worker, computed on, applied to
                                           │
    one process, one model ◀── replay ◀────┘

The arrival time of a gradient does not depend on its values. So the simulation runs
once, and any number of learning rates are tried on its ages.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch

from distlab.calls.progress import Progress
from distlab.simulated.per_rank_globals import one_thread
from distlab.trace import Trace
from distlab.train.asynchronous.server_rules import Rule

__all__ = ["Gradient", "gradients_of", "replay"]


class Gradient(NamedTuple):
    """A gradient received by a server: its worker, its two versions, and its time."""

    worker: int
    computed_on: int
    applied_to: int
    at_s: float

    @property
    def age(self) -> int:
        """The number of updates between the two versions."""
        return self.applied_to - self.computed_on


def gradients_of(trace: Trace, server: int = 0) -> list[Gradient]:
    """Return the gradients that a server received, in order, in a run of `serve`.

    A gradient that a rule dropped is in it, too, although it was not applied.
    """
    version, given, found = 0, {}, []
    for event in sorted(trace.of(server), key=lambda event: event.end or 0.0):
        if event.kind == "send":
            given[event.peer] = version
        elif event.kind == "recv" and event.end is not None:
            computed_on = given[event.peer]
            found.append(Gradient(event.peer, computed_on, version, event.end))
        elif event.kind == "mark" and event.label.startswith("version "):
            version = int(event.label.removeprefix("version "))
    return found


@one_thread()
def replay(
    rule: Rule,
    gradients: Sequence[Gradient],
    compute: Callable[[torch.Tensor, int], torch.Tensor],
    after: Callable[[int, float], object] | None = None,
) -> None:
    """Push gradients to a rule, computed on parameters of the same ages as in a run.

    rule: new, and of the kind that the run had.
    compute: from flat parameters and a worker to a flat gradient.
    after: called after each update with its version and its time in the run, seconds;
        if it returns true, the replay ends.
    """
    rule.begin({gradient.worker for gradient in gradients})
    uses = Counter(gradient.computed_on for gradient in gradients)
    kept = {0: rule.values.clone()}
    with Progress() as progress:
        for number, gradient in enumerate(gradients):
            progress.show(lambda n=number: f"{n} of {len(gradients)} gradients")
            old, before = gradient.computed_on, rule.version
            rule.push(gradient.worker, old, compute(kept[old], gradient.worker))
            uses[old] -= 1
            if not uses[old]:
                del kept[old]
            if rule.version == before:
                continue
            if uses[rule.version]:
                kept[rule.version] = rule.values.clone()
            if after and after(rule.version, gradient.at_s):
                return

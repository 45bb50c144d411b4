"""The checks of ZeRO 3: a stack of layers, of each of which a rank owns a part."""

from dataclasses import dataclass

from distlab.grading.zero.check import NUMBER, ZeroCheck
from distlab.grading.zero.hints import ONLY_PARTS, hint_for_layer
from distlab.grading.zero.memory_hints import (
    hint_for_layers_sent,
    hint_for_little_sent,
    hint_for_memory,
)

__all__ = ["FreedLayers", "ShardedLayers", "named"]

_KEPT = 4  # so many layers a rank may have in memory, and need not gather again


def _probe(comm, *args):
    from distlab.grading.zero.probes import train_stack  # torch: only ranks load it

    return train_stack(comm, *args)


@dataclass
class ShardedLayers(ZeroCheck):
    """ZeRO 3 trains a stack of layers as one process does, and keeps parts only.

    width: of a layer, which has width * (width + 1) parameters, or one more.
    """

    width: int
    optimizer: str = "momentum"

    _probe = staticmethod(_probe)
    _count, _steps, _passes = 3, 2, 1

    @property
    def title(self):
        """Say what is tried."""
        lengths = " and ".join(map(str, sorted(set(self._lengths))))
        return (
            f"{super().title}, {self._count} layers of {lengths} parameters, "
            f"{self.optimizer}"
        )

    @property
    def _lengths(self):
        return [self.width * (self.width + 1) + i % 2 for i in range(self._count)]

    def _arguments(self):
        return self._steps, self._passes

    def _new_witness(self):
        from distlab.grading.zero.stack_witness import StackWitness  # which needs torch
        from distlab.grading.zero.tasks import StackTask

        many = {"steps": self._steps, "passes": self._passes}
        task = StackTask(self.world_size, self.width, self._count, **many)
        return StackWitness(task, self.optimizer)

    def _compare(self, report):
        return (
            self._not_handed()
            or self._first_fault()
            or self._unended()
            or self._ready_made(report, "The parameters are right")
            or self._too_much_state()
            or self._kept_at_the_start()
        )

    def _first_fault(self):
        """Return a verdict for what was wrong first, on the first rank that saw it."""
        faults = [(r["fault"], rank) for rank, r in enumerate(self._results())]
        faults = [(fault, rank) for fault, rank in faults if fault]
        if not faults:
            return None
        fault, rank = min(faults, key=lambda f: _moment(f[0]))
        told = f"Step {fault['step'] + 1}, {fault['phase']}"
        if self._passes > 1:
            told += f" of pass {fault['turn'] + 1}"
        return self._fail(
            f"{told}, on rank {rank}: {self._fault_told(fault)}",
            hint_for_layer(fault, self._results()[rank]),
        )

    def _fault_told(self, fault):
        expected, got = fault["expected"], fault["got"]
        what = {
            "full": f"the parameters that layer {fault['layer']} was given",
            "input": f"the x that layer {fault['layer']} was given",
            "output": "what forward returned",
        }[fault["what"]]
        if fault["place"] is None:
            return f"{what}: expected {expected}, found {got}."
        return (
            f"{what}: not as in one process.\nAt position "
            f"{fault['place']}: expected {expected:.9g}, found {got:.9g}; "
            f"{fault['differ']} numbers differ."
        )

    def _kept_at_the_start(self):
        """Return a verdict if the whole of a layer is in memory after __init__."""
        for rank, result in enumerate(self._results()):
            look = result["looks"][0]
            if look["extra"] > min(self._lengths) * NUMBER / 2:
                found = (
                    f"After __init__ rank {rank} has {look['extra']:,} bytes in use "
                    f"besides its parts, which have {self._parts * NUMBER:,}."
                )
                if look["first"]:
                    named = ", ".join(map(str, look["first"]))
                    found += f"\nThe flat tensors of layers {named} are still there."
                return self._fail(found, ONLY_PARTS)
        return None


@dataclass
class FreedLayers(ShardedLayers):
    """The same, and full parameters are gone between uses; 3(n-1)/n of them move.

    passes: forward and backward so often before a step.
    """

    passes: int = 1

    _count = 8

    @property
    def title(self):
        """Say what is tried."""
        return super().title + f", {self.passes} passes a step" * (self.passes > 1)

    @property
    def _passes(self):
        return self.passes

    def _compare(self, report):
        return (
            super()._compare(report)
            or self._too_much_memory(report)
            or self._too_much_sent(report)
            or self._too_little_sent(report)
        )

    def _too_much_memory(self, report):
        """Return a verdict for the first look at which more was in use than may be."""
        if self.world_size == 1:
            return None  # a part is a whole layer there
        for rank, result in enumerate(self._results()):
            for place, look in enumerate(result["looks"]):
                if look["extra"] > self._allowed(look):
                    found = self._memory_told(rank, result["looks"], place)
                    sent = [self._sent_in(report, r) for r in range(self.world_size)]
                    hint = hint_for_memory(result["looks"], place, sent, self._unit)
                    return self._fail(found, hint)
        return None

    @property
    def _unit(self):
        """The bytes of the largest layer, whole and padded."""
        return -(-max(self._lengths) // self.world_size) * self.world_size * NUMBER

    def _allowed(self, look):
        """Return how many bytes may be in use besides parts, and state, at a look.

        Two whole layers while a layer works, for one may be on its way, and the full
        gradients of two in backward; then what lies between layers.
        """
        x_bytes = 2 * self.width * NUMBER
        if look["phase"] in ("start", "rest"):
            return self._unit / 2 + (self._count + 1) * x_bytes
        units = 4 if look["phase"] == "backward" else 2
        parts = 0 if look["grads"] else self._parts * NUMBER
        later = parts if look["phase"] == "backward" else 0
        return units * self._unit + 4 * self._count * x_bytes + later

    def _memory_told(self, rank, looks, place):
        look = looks[place]
        lines = [
            f"{'':>22}  {'in use':>10}  {'allowed':>10}  {'inputs':>6}  whole layers"
        ]
        for each in looks[max(0, place - 9) : place + 1]:
            use = f"{each['extra']:>10,}  {int(self._allowed(each)):>10,}"
            what = f"{each['inputs']:>6}  {_whole_told(each)}"
            lines.append(f"{named(each):>22}  {use}  {what}")
        lines[-1] += "  ← too much"
        lines.append(
            f"Bytes besides parts and optimizer state, on rank {rank}, step "
            f"{look['step'] + 1}. One whole layer has {self._unit:,}.\n"
            "The last column names layers that were called, and counts other tensors "
            "as large;\ninputs are tensors of an input's size."
        )
        return "\n".join(lines)

    def _sent_in(self, report, rank, number=0):
        """Return bytes that a rank sent in a pass's forward, and in its backward."""
        begins = self._results()[rank]["begins"][2 * number :]
        forward = self._sent(report, rank, begins[0], begins[1])
        return forward, self._sent(report, rank, begins[1], begins[2])

    def _too_much_sent(self, report):
        n = self.world_size
        once = (n - 1) * self._parts * NUMBER
        sent = [self._sent_in(report, rank) for rank in range(n)]
        if all(sum(pair) <= 3 * once for pair in sent):
            return None
        lines = [f"{'rank':>6}  {'forward':>10}  {'backward':>10}"]
        lines += [f"{r:>6}  {f:>10,}  {b:>10,}" for r, (f, b) in enumerate(sent)]
        lines.append(f"{'ideal':>6}  {once:>10,}  {2 * once:>10,}")
        lines.append(
            "Bytes sent in the first pass; (n-1)/n of the parameters, three times."
        )
        return self._fail("\n".join(lines), hint_for_layers_sent(sent, once))

    def _too_little_sent(self, report):
        """Return a verdict if parameters were used that nobody can have sent.

        All but a few layers have to be gathered in forward, and once more in backward,
        where their gradients travel as well.
        """
        n, lengths = self.world_size, sorted(self._lengths)
        gathered = (n - 1) * sum(lengths[:-_KEPT]) * NUMBER
        needed = gathered, gathered + (n - 1) * sum(lengths) * NUMBER
        for number in range(self._steps * self._passes):
            sent = [self._sent_in(report, rank, number) for rank in range(n)]
            found = tuple(map(sum, zip(*sent, strict=True)))
            if found[0] < needed[0] or found[1] < needed[1]:
                lines = [f"{'':>10}  {'forward':>10}  {'backward':>10}"]
                lines += [f"{'sent':>10}  {found[0]:>10,}  {found[1]:>10,}"]
                lines += [f"{'needed':>10}  {needed[0]:>10,}  {needed[1]:>10,}"]
                lines.append(
                    f"Bytes that all ranks sent in pass {number + 1}; needed are those "
                    f"of all layers but {_KEPT}."
                )
                return self._fail("\n".join(lines), hint_for_little_sent())
        return None


def _moment(fault):
    """Return when a fault happened, so that the first can be found."""
    layer = fault["layer"]
    back = fault["phase"] == "backward"
    return fault["step"], fault["turn"], back, -layer if back else layer


def _whole_told(look):
    """Return which layers are whole in memory, and how many tensors as large."""
    told = [", ".join(map(str, look["whole"]))] if look["whole"] else []
    told += [f"{look['large']} more"] if look["large"] else []
    return " and ".join(told) or "none"


def named(look: dict) -> str:
    """Return when a look was."""
    if look["layer"] is not None:
        return f"{look['phase']}, layer {look['layer']}"
    return {"start": "after __init__", "rest": "after step"}.get(
        look["phase"], "after the pass"
    )

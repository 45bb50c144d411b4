"""The failure state: the activity of every rank at a failure, each in one phrase."""

import signal
from collections.abc import Iterable, Sequence

from distlab.calls.failure_location import learners_frames, whereabouts
from distlab.faults import Fault, Kill
from distlab.launch.call import Failure
from distlab.launch.waits import waits_for
from distlab.recorder import DESTROYED, ENDING, Now, SharedTrace, phase_of, shown
from distlab.trace import members_of, mesh_dimension_of

__all__ = ["WAY", "Scene", "call_in_words", "group_in_words", "how_it_died"]
__all__ += ["ranks_in_words"]

WAY = {"send": "to", "recv": "from"}


class Scene:
    """The failure state that a diagnosis is made from, at the time of detection.

    everyone: all ranks. trace: their events up to here.
    """

    def __init__(
        self,
        failure: Failure,
        board: SharedTrace,
        faults: Sequence[Fault],
        output: list[str],
    ):
        self.failure = failure
        self.board = board
        self.output = output
        self.faults = faults
        self.trace = board.trace(cut=True, ended=_ends(failure))
        self.everyone = range(board.world_size)

    def doing(self, rank: int) -> str:
        """Return the activity of `rank` in one phrase."""
        outcome = self.failure.outcomes.get(rank)
        if outcome is None:
            return f"rank {rank} {self._waiting(rank)}"
        if outcome.how == "returned":
            if "left" in outcome.details:
                return f"rank {rank} had left by {outcome.details['left']}"
            left = self.board.flags(rank) & DESTROYED
            destroyed = ", its process group destroyed" if left else ""
            return f"rank {rank} had returned{self.after_passes(rank)}{destroyed}"
        if outcome.details.get("disagreement"):
            return f"rank {rank} stopped at {shown(outcome.details['message'])}"
        if outcome.details.get("communication"):
            return f"rank {rank} lost its connection"
        if outcome.how == "raised":
            return f"rank {rank} raised {outcome.details['type']}, later"
        if (why := outcome.details.get("why")) is not None:
            own = why.startswith(f"rank {rank} ")
            return why if own else f"rank {rank} was lost with its node"
        return f"rank {rank} {how_it_died(outcome.value)}"

    def after_passes(self, rank: int) -> str:
        """Return " after 4 backward passes", "" where none had collectives."""
        passes = self.board.passes(rank)
        noun = "pass" if passes == 1 else "passes"
        return f" after {passes} backward {noun}" if passes else ""

    def where(self, rank: int) -> str:
        """Return the place of `rank` in the learner's code, in half a sentence.

        The stack of a rank that has ended is from before its end, so it is left out.
        """
        outcome = self.failure.outcomes.get(rank)
        if outcome and outcome.details.get("disagreement"):
            return whereabouts([tuple(f) for f in outcome.details["frames"][::-1]])
        return "" if outcome else whereabouts(self._stack(rank))

    def _stack(self, rank):
        return self.failure.stacks.get(rank, [])

    def _waiting(self, rank):
        now = self.board.now(rank)
        if now.state == "blocked":
            missing = sorted(waits_for(self.board, rank, now))
            if now.kind in WAY:
                moving = "" if missing else ", which was in transfer"
                return f"waited in {self.call(rank, now)}{moving}"
            any_of = "any of " * (now.kind == "any")
            whom = f" for {any_of}{ranks_in_words(missing)}" if missing else ""
            return f"waited in {self.call(rank, now)}{whom}{self.pass_of(rank, now)}"
        if now.state == "several":
            return "waited in calls that it had started on several Comms"
        if self._fault_fired(rank, "hang"):
            return "hung, as planned"
        if self._fault_fired(rank, "kill"):
            return "was being killed, as planned"
        if self.board.flags(rank) & ENDING:
            threads = self.trace.of(rank, "mark")[-1].label
            return f"had reached its end, and waited for {threads}"
        if learners_frames(self._stack(rank)):
            return "was running"
        if self._stack(rank):
            return "was starting or ending its call"
        return "was running, and did not answer when its stack was asked for"

    def call(self, rank: int, now: Now) -> str:
        """Return the call of a blocked rank, its group, and its origin, in words."""
        words = call_in_words(now)
        if now.call >= 0:
            words = shown(self.board.call(rank, now.call, now.group))
        return words + group_in_words(now.group, self.board.world_size)

    def pass_of(self, rank: int, now: Now) -> str:
        """Return ", in backward pass 5" if a rank's collective is DDP's or FSDP's."""
        words = self.board.call(rank, now.call, now.group) if now.call >= 0 else ""
        phase, passes = phase_of(words), self.board.passes(rank)
        return f", in {phase} pass {passes + (phase == 'forward')}" if phase else ""

    def _fault_fired(self, rank, label):
        faults = self.trace.of(rank, "fault")
        return any(event.label == label for event in faults)

    def planned(self) -> Kill | None:
        """Return the plan that killed the first rank to fail, if one did."""
        if self.failure.first is None:
            return None
        rank = self.failure.first.rank
        plans = [f for f in self.faults if f.rank == rank and isinstance(f, Kill)]
        return plans[0] if plans and self._fault_fired(rank, "kill") else None

    def last_event(self, rank: int) -> str:
        """Return the last event of `rank` in a sentence; "" if there is none."""
        marks = self.trace.of(rank, "mark")
        title = f'"{marks[-1].label}"' if marks else ""
        calls = self.trace.of(rank, "send", "recv", "barrier", "collective")
        if not calls:
            return f"It was at the beginning of {title}." if marks else ""
        last = calls[-1]
        when = "was in" if last.end is None else "had finished"
        peer = "" if last.peer is None else f" {WAY[last.kind]} rank {last.peer}"
        call = f"Comm call {last.step}, {last.label or last.kind}{peer}"
        return f"It {when} {call}" + (f"; it was at {title}." if marks else ".")

    def last_words(self) -> str:
        """Return the output of the first rank to fail, if it may explain its end."""
        first = self.failure.first
        if "starting" in first.details:
            return first.details["starting"]
        if first.value in (0, -signal.SIGKILL):
            return ""
        return self.output[first.rank]


def _ends(failure):
    """Return rank -> (time, how) for ranks that died or raised an own exception."""
    ends = {}
    for rank, outcome in failure.outcomes.items():
        details = outcome.details
        echo = details.get("communication") or details.get("disagreement")
        if outcome.how == "died":
            ends[rank] = outcome.time, "died"
        elif outcome.how == "raised" and not echo:
            ends[rank] = outcome.time, f"raised {details['type']}"
    return ends


def how_it_died(status: int, planned: Kill | None = None) -> str:
    """Return the end of a process in words, from its exit status and planned fault."""
    if planned is not None:
        return f"was killed, as planned by {planned}"
    if status >= 0:
        return (
            f"left with exit status {status} before its function returned; "
            "os._exit or a crash of the interpreter does that"
        )
    try:
        name = signal.Signals(-status).name
    except ValueError:
        name = f"signal {-status}"
    if name == "SIGSYS":  # see `forbid`
        return "killed itself; os.kill and os.abort do that"
    why = {
        "SIGKILL": ", by itself, from outside, or by the system when memory ran out",
        "SIGSEGV": ", a crash in compiled code",
        "SIGABRT": ", a crash in compiled code",
        "SIGTERM": ", from outside",
    }
    return f"was killed by {name}{why.get(name, '')}"


def call_in_words(now: Now) -> str:
    """Return the call of a blocked rank with its peers, in words."""
    if now.kind == "sendrecv":
        return f"sendrecv (to rank {now.send_to}, from rank {now.recv_from})"
    if now.kind in WAY:
        peer = now.send_to if now.kind == "send" else now.recv_from
        return f"{now.kind} {WAY[now.kind]} rank {peer}"
    if now.kind == "any":
        return now.label.split()[0]
    return now.label or now.kind


def group_in_words(group: str, world_size: int) -> str:
    """Return the members of a group as " among ranks 0 and 1"; "" if all ranks."""
    members, dimension = members_of(group, world_size), mesh_dimension_of(group)
    if len(members) == world_size and not dimension:
        return ""
    return f" among {ranks_in_words(members)}" + f" ({dimension})" * bool(dimension)


def ranks_in_words(ranks: Iterable[int]) -> str:
    """Return "rank 2", "ranks 0, 1 and 3", or "ranks 0 to 63"."""
    ranks = list(ranks)
    if len(ranks) == 1:
        return f"rank {ranks[0]}"
    if len(ranks) > 8 and ranks == list(range(ranks[0], ranks[-1] + 1)):
        return f"ranks {ranks[0]} to {ranks[-1]}"
    return f"ranks {', '.join(map(str, ranks[:-1]))} and {ranks[-1]}"

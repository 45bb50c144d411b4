"""BlockLayout of the shared memory block, and the reading of it on both sides."""

import copy
import mmap
import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

__all__ = ["DESTROYED", "DISAGREED", "ENDING", "IN", "MOST_GROUPS", "OUT", "THREADED"]
__all__ += ["BlockLayout", "Notes", "Now", "Post"]
__all__ += ["agreed", "any_words", "handled", "phase_of", "region_alone", "region_of"]
__all__ += ["shown", "splits", "unequal_splits", "with_extra"]

KINDS = ("send", "recv", "sendrecv", "barrier", "collective", "work", "mark", "fault")
KINDS += ("any",)  # a call that waits for one of several messages
STATES = ("starting", "running", "blocked", "done", "raised", "several")
OUT, IN = 0, 1
THREADED, DESTROYED, DISAGREED, ENDING = 1, 2, 4, 8

NOW_ROW = struct.Struct("<qqqqqqqqqqd")
EVENT_ROW = struct.Struct("<ddiiqii")
GROUP_BITS = 8  # from here on, the kind of an event has its group's slot
UNKNOWN_SIZE = 2**64 - 1
CELL_BYTES = 8

KEPT_EVENTS = 2**16
KEPT_POSTS = 64
KEPT_CALLS = 64
MOST_GROUPS = 64
WORDS_BYTES = 2**23

# A region begins with its now between two versions, then come the counters, then a
# table for each kind of note.
FIRST_VERSION, NOW, LAST_VERSION = 0, CELL_BYTES, CELL_BYTES + NOW_ROW.size
FLAGS, WRITTEN, READ, GROUPS, PASSES, PID = range(128, 176, CELL_BYTES)
_AFTER_COUNTERS = 256


class Now(NamedTuple):
    """The current state of a rank.

    state: one of STATES; in "several", threads of it are blocked in different calls.
    label, step: as in `Event`.
    kind: as in `Event`, or "sendrecv", or "any": it waits for one of several messages,
        which its label lists, see `any_of`.
    send_to, send_number: the message it waits to send, or -1.
    recv_from, recv_number: the message it waits to receive, or -1.
    call: the number of the collective it waits in, or -1.
    group: the group that the collective or the messages belong to, "" for the world.
    send_bytes, recv_bytes: the sizes of those two messages.
    since: seconds on the system's monotonic clock.
    """

    state: str
    kind: str
    send_to: int
    send_number: int
    recv_from: int
    recv_number: int
    call: int
    send_bytes: int
    recv_bytes: int
    step: int
    label: str
    since: float
    group: str = ""

    def any_of(self) -> list[tuple[int, int, int, str]]:
        """Return (peer, way, number, group) of messages each of which would free it."""
        sides = (side.split(":") for side in self.label.split()[1:])
        return [(int(p), int(way), int(n), group) for p, way, n, group in sides]


def any_words(call: str, sides: Iterable[tuple[int, int, int, str]]) -> str:
    """Return the label of a rank that waits in `call` for one of these messages.

    sides: (peer, way, number, group) of each.
    """
    return " ".join([call, *(":".join(map(str, side)) for side in sides)])


def agreed(words: str) -> str:
    """Return the part of a collective's words in which all ranks must agree."""
    return words.partition("\n")[0]


def shown(words: str) -> str:
    """Return a collective's words for people, with its module where that is known."""
    common, own, _ = f"{words}\n\n".split("\n")[:3]
    return own.replace("*", common, 1) if own else common


def phase_of(words: str) -> str:
    """Return "forward" or "backward" if a model's pass called the collective, or ""."""
    return f"{words}\n\n".split("\n")[2]


def with_extra(words: str, *extra: str) -> str:
    """Return a collective's words with further lines that `shown` leaves out."""
    lines = [*words.split("\n"), "", ""][:3]
    return "\n".join([*lines, *extra])


def handled(words: str) -> str:
    """Return the exception that was being handled when a collective was called, or "".

    As JSON: type, message and frames, as in `described`.
    """
    return f"{words}\n\n\n\n".split("\n")[3]


def splits(words: str) -> tuple[list[int], list[int]] | None:
    """Return the elements that an all-to-all sends each member, and expects of it."""
    given = f"{words}\n\n\n\n\n".split("\n")[4]
    if not given:
        return None
    out, into = (each.split(",") for each in given.split("|"))
    return [*map(int, out)], [*map(int, into)]


def unequal_splits(
    calls: Mapping[int, str], members: Sequence[int]
) -> tuple[int, int, int, int] | None:
    """Return (sender, receiver, elements sent, expected) of an all-to-all that differ.

    calls: rank -> the words of its call. None if all agree.
    """
    sides = {rank: splits(words) for rank, words in calls.items()}
    sides = {rank: both for rank, both in sides.items() if both}
    for sender in sides:
        for receiver in sides:
            sent = sides[sender][0][members.index(receiver)]
            expected = sides[receiver][1][members.index(sender)]
            if sent != expected:
                return sender, receiver, sent, expected
    return None


class Post(NamedTuple):
    """One side of a message: its number between the pair, size in bytes, and type."""

    number: int
    bytes: int
    type: str

    def describe(self) -> str:
        """Return size and type in words."""
        if self.type == "object":
            return "an object"
        return f"{self.bytes} bytes of {self.type}"


class BlockLayout:
    """Offsets of each record in the shared block: bytes, or cells of eight bytes.

    stride: bytes of one rank's region. total: bytes of the block.
    posts, calls, events, words: their offsets in bytes from the start of a region.
    kept_posts, kept_events, words_bytes: how much of each kind a region has room for.
    """

    def __init__(
        self,
        world_size: int,
        *,
        kept_posts: int = KEPT_POSTS,
        kept_events: int = KEPT_EVENTS,
        words_bytes: int = WORDS_BYTES,
    ):
        self._regions = range(world_size)
        self.kept_posts, self.kept_events = kept_posts, kept_events
        self.words_bytes = words_bytes
        self._pairs = pairs = 2 * world_size
        self.posts = _AFTER_COUNTERS + MOST_GROUPS * pairs * CELL_BYTES
        posts = MOST_GROUPS * pairs * kept_posts  # pages that are not used take no room
        self.calls = self.posts + posts * 2 * CELL_BYTES
        self.events = self.calls + MOST_GROUPS * (2 + KEPT_CALLS) * CELL_BYTES
        self.words = self.events + kept_events * EVENT_ROW.size
        end = self.words + words_bytes
        self.stride = -(-end // mmap.PAGESIZE) * mmap.PAGESIZE
        self.total = world_size * self.stride

    def alone(self) -> "BlockLayout":
        """Return a layout of one region, which every rank's notes are looked up in."""
        other = self.among([0] * len(self._regions))
        other.total = self.stride
        return other

    def among(self, regions: Sequence[int]) -> "BlockLayout":
        """Return a layout of the same block in which rank r has region `regions[r]`."""
        layout = copy.copy(self)
        layout._regions = regions
        return layout

    def base(self, rank: int) -> int:
        """Return the offset in bytes of the region of `rank`."""
        return self._regions[rank] * self.stride

    def count(self, rank: int, peer: int, way: int, slot: int = 0) -> int:
        """Return the cell in which `rank` counts its messages with `peer` in a group.

        slot: the group's index in the table of `rank`.
        """
        place = slot * self._pairs + 2 * peer + way
        return (self.base(rank) + _AFTER_COUNTERS) // CELL_BYTES + place

    def post(self, rank: int, peer: int, way: int, number: int, slot: int = 0) -> int:
        """Return the first of two cells for that side of message `number` in a group.

        The first holds the size in bytes, the second the type's tag.
        """
        place = slot * self._pairs + 2 * peer + way
        place = place * self.kept_posts + number % self.kept_posts
        return (self.base(rank) + self.posts) // CELL_BYTES + 2 * place

    def group(self, rank: int, slot: int) -> int:
        """Return the first of a group's cells: its name, its count, then its calls."""
        first = (self.base(rank) + self.calls) // CELL_BYTES
        return first + slot * (2 + KEPT_CALLS)

    def call(self, rank: int, slot: int, number: int) -> int:
        """Return the cell in which `rank` notes a group's `number`-th collective."""
        return self.group(rank, slot) + 2 + number % KEPT_CALLS


def region_of(world_size: int) -> BlockLayout:
    """Return the smaller layout of ranks that write to files; 1.9 MB a rank of 64."""
    kept_posts = 4 if world_size <= 256 else 2
    return BlockLayout(
        world_size, kept_posts=kept_posts, kept_events=2**12, words_bytes=2**20
    )


def region_alone(world_size: int) -> BlockLayout:
    """Return that layout for a rank that maps its own region and no other."""
    return region_of(world_size).alone()


class Notes:
    """The notes of every rank, as the ranks and the kernel alike may read them.

    Counters are cells of eight bytes, which are read and written whole. `struct` would
    fill a row with zeros before it writes it, and another process might see those.

    beside: other notes in the same process, whose memory they share.
    """

    def __init__(
        self,
        memory: mmap.mmap | None,
        layout: BlockLayout,
        world_size: int,
        beside: "Notes | None" = None,
    ):
        self._memory = beside._memory if beside else memory
        self._cells = beside._cells if beside else memoryview(memory).cast("Q")
        self._layout = layout
        self._words, self._groups = {}, {}
        self.world_size = world_size

    def posted(self, rank: int, peer: int, way: int, group: str = "") -> int:
        """Return the number of messages `rank` posted to (OUT) or from (IN) `peer`."""
        slot = self._slots_of(rank).get(group) if group else 0
        if slot is None:
            return 0
        return self._cells[self._layout.count(rank, peer, way, slot)]

    def post(
        self, rank: int, peer: int, way: int, number: int, group: str = ""
    ) -> Post | None:
        """Return that side of message `number`; None if not posted, or long ago."""
        if self.posted(rank, peer, way, group) < number:
            return None
        slot = self._slots_of(rank)[group]
        at = self._layout.post(rank, peer, way, number, slot)
        size, tag = self._cells[at], self._cells[at + 1]
        kept = self._layout.kept_posts
        if self.posted(rank, peer, way, group) - number >= kept - 1:
            return None  # its cells may have been overwritten while they were read
        return Post(number, size, self.word(rank, tag & 0xFFFFFFFF))

    def groups(self, rank: int) -> dict[str, int]:
        """Return the groups that `rank` has used, "" for the world.

        Each has its slot in the rank's table. The returned dict does not grow with
        later groups.
        """
        return dict(self._slots_of(rank))

    def _slots_of(self, rank):
        """Return the live dict group -> slot, which grows as the rank uses more."""
        known = self._groups.setdefault(rank, {"": 0})
        for slot in range(len(known), self._counter(rank, GROUPS) + 1):
            known[self.word(rank, self._cells[self._layout.group(rank, slot)])] = slot
        return known

    def calls(self, rank: int, group: str = "") -> int:
        """Return the number of collectives of a group that `rank` has entered."""
        slot = self._slots_of(rank).get(group)
        return 0 if slot is None else self._cells[self._layout.group(rank, slot) + 1]

    def call(self, rank: int, number: int, group: str = "") -> str:
        """Return name and signature of the `number`-th collective of `rank` there."""
        at = self._layout.call(rank, self._slots_of(rank)[group], number)
        return self.word(rank, self._cells[at])

    def passes(self, rank: int) -> int:
        """Return the number of backward passes with collectives begun by `rank`."""
        return self._counter(rank, PASSES)

    def pid(self, rank: int) -> int:
        """Return the process that noted itself as `rank`; 0 if none has."""
        return self._counter(rank, PID)

    def flags(self, rank: int) -> int:
        """Return the bits THREADED and DESTROYED that are set for `rank`."""
        return self._counter(rank, FLAGS)

    def word(self, rank: int, place: int) -> str:
        """Return the text at offset `place` of the rank's words; "" for offset 0."""
        if not place:
            return ""
        if (rank, place) not in self._words:
            at = self._layout.base(rank) + self._layout.words + place
            (length,) = struct.unpack_from("<I", self._memory, at)
            text = self._memory[at + 4 : at + 4 + length].decode(errors="replace")
            self._words[rank, place] = text
        return self._words[rank, place]

    def _counter(self, rank, which):
        return self._cells[(self._layout.base(rank) + which) // CELL_BYTES]

    def _set_counter(self, rank, which, value):
        self._cells[(self._layout.base(rank) + which) // CELL_BYTES] = value

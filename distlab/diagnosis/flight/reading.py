"""Flight-recorder dumps of torch.distributed, read as untrusted data and kept compact.

A dump is the content of one rank's recorder: its latest calls, oldest first, as a
pickle or, without stacks, as JSON. Equal calls are one object in memory here, on all
ranks, so a thousand ranks take little more than their sequence numbers.

Source: FlightRecorder.hpp of PyTorch 2.13, version 2.10 of the format; TorchComms'
hooks/fr/FlightRecorder.cpp, whose dumps have one counter for all communicators, no
peers of messages, and on CPUs no state but "retired".

A signature is equal on two ranks iff their calls match: properties that may differ
between ranks (the sizes of an all-to-all, a scatter's list) are not in it.
"""

import gc
import json
import math
import pickle
import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

from distlab.errors import InvalidArgument

__all__ = [
    "DEFAULT",
    "LOG_SUFFIXES",
    "FlightEntry",
    "FlightOperation",
    "Group",
    "RankDump",
    "files_of",
    "read",
    "signature",
]

# Source: the names that ProcessGroupNCCL and ProcessGroupGloo record, PyTorch 2.13.
_PUBLIC = {
    "_all_gather_base": "all_gather_into_tensor",
    "_allgather_base": "all_gather_into_tensor",
    "_reduce_scatter_base": "reduce_scatter_tensor",
    "_broadcast_oop": "broadcast",
    "_reduce_oop": "reduce",
    "all_reduce_barrier": "barrier",
    "allreduce_coalesced": "all_reduce_coalesced",
}
_SIZES_DIFFER = re.compile("all_to_all|all_gather_v|reduce_scatter_v|barrier|coalesced")
_DTYPES = {"Float": "float32", "Double": "float64", "Half": "float16", "Byte": "uint8"}
_DTYPES |= {"Char": "int8", "Short": "int16", "Int": "int32", "Long": "int64"}
_MESSAGE = re.compile(r":(send|recv|batch_op_issue)$")
_PAIR = re.compile(r"(send|recv) (\d+)(?:->|<-)(\d+)")

_Tensors = tuple[tuple[tuple[int, ...], ...], tuple[str, ...]]


def signature(
    name: str, inputs: _Tensors, outputs: _Tensors, ranks: tuple[int, ...]
) -> tuple[str, tuple[tuple[str, int, str], ...]]:
    """Return (call as text, its peers as (way, rank, tensor) if a send or receive).

    name: as recorded, without the backend. inputs, outputs: (sizes, types).
    ranks: the members of the group, to map group ranks in `name`; () if unknown.
    """
    if pair := _PAIR.fullmatch(name):
        way, peer = pair[1], int(pair[3])
        peer = ranks[peer] if peer < len(ranks) else peer
        tensor = _tensors(*(inputs if way == "send" else outputs))
        to = "to" if way == "send" else "from"
        return f"{way}({tensor}) {to} rank {peer}", ((way, peer, tensor),)
    name = _PUBLIC.get(name, name)
    if _SIZES_DIFFER.search(name):
        return f"{name}()", ()
    given, made = _tensors(*inputs), _tensors(*outputs)
    if name in ("gather", "scatter"):
        return f"{name}({given if name == 'gather' else made})", ()
    return f"{name}({given if given == made else f'{given} → {made}'})", ()


def _tensors(sizes, dtypes):
    """Return "float32[2, 4]"; for several tensors their number, type and size."""
    kinds = {_DTYPES.get(dtype, dtype.lower()) for dtype in dtypes}
    if len(sizes) == 1:
        return f"{'/'.join(kinds)}{list(sizes[0])}"
    if len(set(sizes)) == 1:
        return f"{len(sizes)} × {'/'.join(sorted(kinds))}{list(sizes[0])}"
    elements = sum(map(math.prod, sizes))
    return f"{len(sizes)} × {'/'.join(sorted(kinds))}, {elements:,} elements"


# Of a job's output, which is no dump.
LOG_SUFFIXES = (".out", ".err", ".log", ".txt", ".stdout", ".stderr")
DEFAULT = "default_pg"  # torch's name for the group of all ranks
_NUMBERED = re.compile(r"(.*?)(\d+)(\.\D\w*)?")
_LIBRARY = re.compile(
    r"/(site|dist)-packages/|/lib(64)?/python\d|/torch/(distributed|nn|autograd|_)|^<"
)
_WHERE = itemgetter("filename", "line", "name")


@dataclass(eq=False)
class Group:
    """A process group as dumps name it, one object on all ranks.

    ranks: its members, () where the dumps don't list them, as gloo's don't.
    """

    name: str
    description: str
    ranks: tuple[int, ...]


class FlightEntry(NamedTuple):
    """A call of a rank, its progress, and the user's frames, innermost first.

    state: "scheduled", "started" or "done".
    """

    call: str
    state: str
    stack: tuple[tuple[str, int, str], ...]


class FlightOperation(NamedTuple):
    """One call of one rank. peers: of sends and receives, (way, rank, tensor)."""

    group: Group
    number: int
    entry: FlightEntry
    since_ns: int
    peers: tuple[tuple[str, int, str], ...] = ()

    @property
    def call(self) -> str:
        """The call, in words."""
        return self.entry.call


@dataclass
class RankDump:
    """One rank's dump, made compact.

    collectives: group -> sequence number -> `FlightEntry`, as far as the dump reaches.
    unfinished: in the order of the calls. last: the latest call.
    overwritten: whether the recorder dropped its oldest calls.
    everyone: the members of the default group, () where the dump doesn't list them.
    torchcomms: whether TorchComms wrote it. unpaired: whether it has messages, whose
    peers it doesn't name.
    """

    collectives: dict[Group, dict[int, FlightEntry]] = field(default_factory=dict)
    unfinished: list[FlightOperation] = field(default_factory=list)
    last: FlightOperation | None = None
    overwritten: bool = False
    gloo: bool = False
    everyone: tuple[int, ...] = ()
    torchcomms: bool = False
    unpaired: bool = False


def files_of(place: Path) -> dict[int, Path]:
    """Return rank -> file, of a folder of dumps, or of "folder/prefix" in it.

    Raises: InvalidArgument if there are none, or those of several jobs.
    """
    folder, prefix = (place, "") if place.is_dir() else (place.parent, place.name)
    found = defaultdict(dict)
    for path in folder.iterdir() if folder.is_dir() else ():
        match = _NUMBERED.fullmatch(path.name)
        if path.suffix in LOG_SUFFIXES:
            continue
        if match and path.name.startswith(prefix) and path.is_file():
            kind = f"{match[1]}N{match[3] or ''}"
            found[kind][int(match[2])] = path
    if not found:
        raise InvalidArgument(
            f"{place} has no dumps: one file per rank, such as nccl_trace_rank_0."
        )
    kinds = list(found.values())
    if len(kinds) > 1 and len(set().union(*kinds)) == sum(map(len, kinds)):
        found = {"": {rank: path for kind in kinds for rank, path in kind.items()}}
    if len(found) > 1:
        raise InvalidArgument(
            f"{place} has files of several kinds: {', '.join(sorted(found))}. Say "
            f"which by how they begin, such as {folder / min(found).partition('N')[0]}"
        )
    return dict(sorted(next(iter(found.values())).items()))


def read(files: dict[int, Path]) -> tuple[dict[int, RankDump], dict[int, str]]:
    """Return rank -> dump, and rank -> the reason why its file can't be read."""
    compact, dumps, unreadable = _Compact(), {}, {}
    collecting = gc.isenabled()
    gc.disable()  # millions of small objects, none of them in a cycle
    try:
        for rank, path in files.items():
            try:
                dumps[rank] = compact(_load(path))
            except Exception as error:  # a file's bytes can provoke any
                unreadable[rank] = f"{path.name} {_why(error, path)}"
    finally:
        if collecting:
            gc.enable()
    return dumps, unreadable


class _PlainOnly(pickle.Unpickler):
    """An unpickler of numbers, strings and containers; it refuses names of code."""

    def find_class(self, module, name):
        raise InvalidArgument(
            f"is refused: it names the code {module}.{name}, and a dump holds only data"
        )


def _load(path):
    with path.open("rb") as file:  # as a file: reading from memory takes four times
        first = file.peek(1)[:1]
        if not first:
            raise InvalidArgument("is empty")
        return json.load(file) if first == b"{" else _PlainOnly(file).load()


def _why(error, path):
    """Return the reason why a file can't be read, as text to follow its name."""
    if isinstance(error, InvalidArgument):
        return str(error)
    if isinstance(error, EOFError) or "truncated" in str(error):
        return f"is cut off after {path.stat().st_size:,} bytes"
    return f"is not what torch writes ({type(error).__name__}: {error})"


def _types(given):
    """Return the types of tensors; some writers give one string for all."""
    return (given,) if isinstance(given, str) else tuple(given)


class _Compact:
    """A converter of dumps to their compact form, which shares equal objects."""

    def __init__(self):
        self._calls, self._stacks, self._entries = {}, {}, {}
        self._groups, self._members = {}, {}

    def __call__(self, dump: dict) -> RankDump:
        """Return the compact form of a dump."""
        version, made = str(dump["version"]), RankDump()
        if any("collective_seq_id" not in entry for entry in dump["entries"][:1]):
            raise InvalidArgument(
                "is too old: it has no collective_seq_id, which PyTorch 2.4 and later "
                "write, and by which calls of two ranks are compared"
            )
        if not version.startswith("2."):
            raise InvalidArgument(f"is in version {version} of the format; 2 is known")
        config = {}
        for name, each in dump.get("pg_config", {}).items():
            config[name] = self._ranks_in(str(each["ranks"]))
            if not name or each["desc"] == DEFAULT:  # gloo's has no name
                made.everyone = config[name]
        made.overwritten = bool(dump["entries"]) and dump["entries"][0]["record_id"] > 0
        entries = self._of_torchcomms(dump["entries"], made)
        groups, calls = {}, {}
        for entry in entries:
            name, description = map(str, entry["process_group"])
            if (group := groups.get((name, description))) is None:
                key = name, description, config.get(name, ())
                group = self._groups.setdefault(key, Group(*key))
                groups[name, description] = group
            paired = entry.get("is_p2p", False)
            number = int(entry["p2p_seq_id" if paired else "collective_seq_id"])
            call, peers, state = self._call(entry, group)
            made.gloo |= entry["profiling_name"].startswith("gloo:")
            known = calls.get((group, paired, number))
            if known is None:
                stack = self._stack(entry.get("frames", ()))
                since = int(entry["time_created_ns"]) % 2**63
                calls[group, paired, number] = [call, state, stack, since, peers]
            else:  # a batch, of one number: its last call has the state of all
                known[0] += f" and {call}" if call != "coalesced" else ""
                known[1], known[4] = state, known[4] + peers
        for (group, paired, number), (*what, since, peers) in calls.items():
            entry = self._entries.setdefault(tuple(what), FlightEntry(*what))
            made.last = FlightOperation(group, number, entry, since, peers)
            if not paired:
                made.collectives.setdefault(group, {})[number] = entry
            if entry.state != "done":
                made.unfinished.append(made.last)
        return made

    def _of_torchcomms(self, entries, made):
        """Return the entries, those of TorchComms' as torch would have written them.

        Without messages, renumbered by group, and completed where they are retired.
        """
        named = [(e["process_group"], e["profiling_name"]) for e in entries]
        if not named or any(g[1] != call.partition(":")[0] for g, call in named):
            return entries
        made.torchcomms = True
        kept = [e for e in entries if not _MESSAGE.search(e["profiling_name"])]
        made.unpaired = len(kept) < len(entries)
        for entry in kept:
            if entry.get("retired", True):
                entry["state"] = "completed"
        if made.overwritten and (made.unpaired or len({g[0] for g, _ in named}) > 1):
            raise InvalidArgument(
                "is TorchComms', which numbers the calls of all communicators together,"
                " and has lost its oldest: FlightRecorderHook(max_entries=) keeps more"
            )
        if made.overwritten:
            return kept
        counts = Counter()
        for entry in kept:
            name = entry["process_group"][0]
            counts[name] += 1
            entry["collective_seq_id"] = counts[name]
        return kept

    def _ranks_in(self, text):
        if text not in self._members:
            self._members[text] = tuple(map(int, re.findall(r"\d+", text)))
        return self._members[text]

    def _call(self, entry, group):
        """Return the call in words, its peers if it is a send or receive, its state."""
        backend, _, name = entry["profiling_name"].partition(":")
        inputs = tuple(map(tuple, entry["input_sizes"])), _types(entry["input_dtypes"])
        made = tuple(map(tuple, entry["output_sizes"])), _types(entry["output_dtypes"])
        key = name, inputs, made, group
        if key not in self._calls:
            self._calls[key] = signature(name, inputs, made, group.ranks)
        state = entry["state"]
        # gloo never records "completed"; a call that has ended is retired.
        ended = backend == "gloo" and entry.get("retired", True)
        return *self._calls[key], "done" if state == "completed" or ended else state

    def _stack(self, frames):
        """Return the frames of the user's own code."""
        frames = tuple(map(_WHERE, frames))
        if frames not in self._stacks:
            # Only Python's files: a dump could name any, to have a line of it shown.
            self._stacks[frames] = tuple(
                (file, int(line), str(function))
                for file, line, function in frames
                if file.endswith(".py") and not _LIBRARY.search(file)
            )
        return self._stacks[frames]

"""What a learner's functions are tried on: one scene for each step of the exercise.

Each returns plain data: what came out, and what the engine counted meanwhile.
"""

import json
import os
import secrets
from collections import Counter
from operator import is_

import cloudpickle

from distlab.calls.travel import unpack
from distlab.dataflow.rdd import RDD
from distlab.dataflow.rdd.graph import Wide
from distlab.dataflow.trial.plain import plain
from distlab.dataflow.trial.rdd_functions import FUNCTIONS, Key, Parse, with_lookups
from distlab.dataflow.trial.rdd_twin import Theirs, lines_file, parsed_file
from distlab.trace import Lineage

__all__ = ["clusters", "joined", "reduced"]


def reduced(program, case: dict) -> dict:
    """Call reduce_by_key(rdd, function, partitions) on pairs; then join what it made.

    case: parts, the pairs of each partition; function, the name of one of FUNCTIONS;
    partitions; others, pairs to join with.
    """
    given = _pairs(program, case["parts"])
    called = given, FUNCTIONS[case["function"]], case["partitions"]
    made, seen = _called(program, *called, given=given)
    if made is None:
        return seen
    parts = _glommed(made)
    seen |= _last_job(program) | {"parts": parts}
    if not all(_is_pair(record) for part in parts for record in part):
        return seen
    others = program.context.parallelize(case["others"], 2)
    both = RDD.join(made, RDD.partitionBy(others, case["partitions"]))
    seen["joined"] = _collected(both)
    seen["partitioner"] = made.partitioner is not None
    shuffles = _shuffles(RDD.lineage(both)) - _shuffles(RDD.lineage(made))
    seen["further_shuffles"] = len(shuffles) - 1  # one brings the others into place
    return seen


def joined(program, case: dict) -> dict:
    """Call join_small(context, large, small) on pairs by words, and collect.

    case: parts, the pairs of each partition of the large one; small, a list of pairs;
    counted, whether keys are to count how often they are looked for.
    """
    keyed = _keyed if case["counted"] else _unchanged
    given = _pairs(program, [keyed(part) for part in case["parts"]])
    small, context = keyed(case["small"]), program.context
    made, seen = _called(program, context, given, small, given=given)
    seen["broadcasts"] = len(context.broadcasts)
    if made is None:
        return seen
    sent = RDD.program(made, b"")
    counted = Theirs(cloudpickle.dumps(with_lookups), {})
    parts = _glommed(RDD.mapPartitions(made, counted))
    ends = [part.pop() for part in parts]
    looked = sum(end["tuple"][1] for end in ends)
    table = RDD.program(RDD.map(given, _Holding(small)), b"")
    bare = RDD.program(given, b"")
    more = {"parts": parts, "lookups": looked, "program_bytes": len(sent) - len(bare)}
    more["table_bytes"] = len(table) - len(bare)
    return seen | _last_job(program) | more


def _is_pair(told):
    return isinstance(told, dict) and len(told.get("tuple", ())) == 2


class _Holding:
    """A function that takes a table along, to see how many bytes that is."""

    def __init__(self, table):
        self.table = table

    def __call__(self, record):
        return record


def clusters(program, case: dict) -> dict:
    """Call kmeans(lines, parse, centres, steps), and again with a worker killed.

    case: parts, the lines of each partition; centres; steps.
    """
    clean = _means(program, case, 0)
    jobs = len(clean["jobs"])
    if not case["killed"] or jobs < 2:
        return {"clean": clean, "killed": None}
    program.context.kill_after = len(program.context.seen) + max(1, jobs // 2)
    killed = _means(program, case, 1)
    program.context.kill_after = None
    return {"clean": clean, "killed": killed}


def _means(program, case, number):
    """Return the centres, and what the jobs of one call did."""
    context = program.context
    first, before = len(context.seen), context.kills()
    lines, count = _lines(context, case["parts"], number)
    context.lost = None
    given = lines, Parse(number), case["centres"], case["steps"]
    centres, same = program.call(_called_there, program.function, *given)
    jobs = context.seen[first:]
    lost = {} if context.lost is None else Counter(n for n, _ in context.lost)
    mine = [p for n, p in context.lost or () if n == max(lost)] if lost else []
    ran = Counter(p for seen in jobs for n, p in seen.job.computed if n == lines.id())
    return {
        "centres": _told_centres(centres),
        "changed": not same,
        "parsed": os.path.getsize(count) if os.path.exists(count) else 0,
        "ran": [ran[p] for p in range(lines.getNumPartitions())],
        "jobs": list(map(_job, jobs)),
        "fired": context.kills() - before,
        "lost": mine,
    }


def _lines(context, parts, number):
    """Return an RDD of lines of which only a worker knows the points; and what counts.

    parts: the lines as text. The second is the path of a file that gets a byte for
    every line that is parsed.
    """
    folder, points, hidden = context.cluster.folder, {}, []
    for part in parts:
        names = [f"point {secrets.token_hex(8)}" for _ in part]
        told = [list(map(float, line.split())) for line in part]
        points |= zip(names, told, strict=True)
        hidden.append(names)
    with open(lines_file(folder, number), "w") as file:
        json.dump(points, file)
    lines = context.parallelize(hidden, len(hidden)).flatMap(_unchanged)
    return lines.setName("lines"), parsed_file(folder, number)


def _called_there(kmeans, lines, parse, centres, steps):
    """In the program: return the centres, and whether the list is as it was."""
    begun = list(centres)
    made = _numbers(kmeans(lines, parse, begun, steps))
    same = len(begun) == len(centres) and all(map(is_, begun, centres))
    return made, same


def _numbers(centres):
    """Return centres as lists of plain numbers, also those of numpy."""
    if hasattr(centres, "tolist"):
        centres = centres.tolist()
    if not isinstance(centres, list | tuple):
        return centres
    return [_point(centre) for centre in centres]


def _point(centre):
    if hasattr(centre, "tolist"):
        centre = centre.tolist()
    if not isinstance(centre, list | tuple):
        return centre
    return [x.item() if hasattr(x, "item") else x for x in centre]


def _told_centres(centres):
    """Return what the program says its centres are, as plain data."""
    if type(centres) is not list:
        return {"odd": plain(centres)}
    return list(map(plain, centres))


def _job(seen):
    """Return what is judged of one job of a loop."""
    job = seen.job
    kept = [node for node in job.lineage.nodes if node.cached]
    return {
        "action": job.action,
        "bytes": seen.got_bytes,
        "sent_bytes": seen.sent_bytes,
        "records": max(
            (sum(map(sum, each)) for each in job.records.values()), default=0
        ),
        "kept": [
            [n.id, n.label or n.name, len(n.computed), len(n.reused)] for n in kept
        ],
    }


def _called(program, *args, given):
    """Return the RDD that a learner's function made, or None, and what was seen."""
    context = program.context
    before = len(context.seen)
    made = program.call(program.function, *args)
    jobs = context.seen[before:]
    seen = {
        "jobs": [[j.job.action, j.got_bytes, _touches(j.job, given)] for j in jobs],
        "returned": plain(made) if type(made) is not RDD else None,
    }
    if type(made) is not RDD:
        return None, seen
    nodes = RDD.lineage(made).nodes
    seen |= {
        "partitions": RDD.getNumPartitions(made),
        "names": [node.name for node in nodes if node.id > given.id()],
        "sources": [n.name for n in nodes if not n.parents and n.id > given.id()],
        "from_given": given.id() in {node.id for node in nodes},
        "combines": _combining(made),
    }
    return made, seen


def _touches(job, given):
    return given.id() in {node.id for node in job.lineage.nodes}


def _combining(made):
    """Whether a shuffle in the lineage has the engine combine values."""
    waiting, seen = [made], set()
    while waiting:
        node = waiting.pop()
        for each in node.dependencies:
            if isinstance(each, Wide) and unpack(each.packed)[2] is not None:
                return True
            if each.parent.number not in seen:
                seen.add(each.parent.number)
                waiting.append(each.parent)
    return False


def _last_job(program):
    """Return what the last job did."""
    job = program.context.seen[-1].job
    return {
        "stages": len(job.stages),
        "records": _records_of(job),
        "bytes": sum(sum(map(sum, matrix)) for matrix in job.shuffled.values()),
        "fetched": job.counts.get("broadcasts_fetched", 0),
    }


def _records_of(job):
    """Return how many records each map task gave to the shuffle, if there is one."""
    rows = [row for matrix in job.records.values() for row in matrix]
    return [sum(row) for row in rows]


def _glommed(rdd):
    return _collected(RDD.glom(rdd))


def _collected(rdd):
    return list(map(plain, RDD.collect(rdd)))


def _shuffles(lineage: Lineage):
    parents = [parent for node in lineage.nodes for parent in node.parents]
    return {parent.shuffle for parent in parents if parent.kind == "wide"}


def _pairs(program, parts):
    """Return an RDD with these pairs in each partition."""
    parts = [[tuple(pair) for pair in part] for part in parts]
    return program.context.parallelize(parts, len(parts)).flatMap(_unchanged)


def _keyed(pairs):
    return [(Key(key) if type(key) is str else key, value) for key, value in pairs]


def _unchanged(records):
    return records

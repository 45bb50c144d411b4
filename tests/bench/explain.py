"""How long a big job's dumps take to explain, and how much memory: beside pickle alone.

    python tests/bench/explain.py [ranks] [entries]

Rank 1 of 1,024 has made one call fewer than the others. Every entry has a stack of 15
frames, as deep as FSDP's.
"""

import pickle
import resource
import sys
import tempfile
import time
from pathlib import Path

import distlab.diagnosis.flight

LIBRARY = "/opt/conda/lib/python3.11/site-packages/torch/distributed/fsdp/part{}.py"


def stacks():
    """Return the stacks of twelve calls, innermost frame first."""
    files = [LIBRARY.format(n) for n in range(11)] + [
        f"/job/part{n}.py" for n in "0123"
    ]
    return [
        [
            {"name": f"function{n}", "filename": file, "line": 10 * n + kind}
            for n, file in enumerate(files)
        ]
        for kind in range(12)
    ]


def dump(rank, ranks, entries):
    """Return one rank's dump in torch's format, as its pickler writes it."""
    calls = entries - (rank == 1)
    kinds = stacks()
    made = [
        {
            "frames": [dict(frame) for frame in kinds[number % 12]],
            "record_id": 5000 + number,
            "pg_id": 0,
            "process_group": ("0", "default_pg"),
            "thread_name": "python",
            "thread_id": "140521343175552",
            "collective_seq_id": 5001 + number,
            "p2p_seq_id": 0,
            "op_id": 5001 + number,
            "profiling_name": "nccl:_allgather_base",
            "time_created_ns": 1_700_000_000_000_000_000 + number * 1_000_000,
            "input_sizes": [[1000 * (number % 12)]],
            "input_dtypes": ["BFloat16"],
            "output_sizes": [[1000 * (number % 12) * ranks]],
            "output_dtypes": ["BFloat16"],
            "state": "completed" if number < entries - 1 else "started",
            "time_discovered_started_ns": 1_700_000_000_000_000_000 + number,
            "time_discovered_completed_ns": None,
            "retired": number < entries - 1,
            "timeout_ms": 600000,
            "is_p2p": False,
        }
        for number in range(calls)
    ]
    members = {"name": "0", "desc": "default_pg", "ranks": str(list(range(ranks)))}
    config = {"0": members}
    return {"version": "2.10", "pg_config": config, "pg_status": {}, "entries": made}


def timed(name, function):
    """Print a row: what it took, and the peak of this process's memory."""
    began, worked = time.monotonic(), time.process_time()
    result = function()
    took, worked = time.monotonic() - began, time.process_time() - worked
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    print(f"{name:36}{took:8.1f} s{worked:10.1f} s{peak:10.0f} MB")
    return result


def main(ranks=1024, entries=2000):
    """Make the folder, and print the table."""
    with tempfile.TemporaryDirectory() as folder:
        shared = {rank: pickle.dumps(dump(rank, ranks, entries), 2) for rank in (0, 1)}
        for rank in range(ranks):
            data = shared[1 if rank == 1 else 0]
            (Path(folder) / f"nccl_trace_rank_{rank}").write_bytes(data)
        print(f"{ranks} ranks, {entries} entries each, {len(shared[0]):,} bytes a dump")
        print(f"{'':36}{'time':>10}{'processor':>12}{'peak':>13}")

        def load():
            for path in Path(folder).iterdir():
                pickle.loads(path.read_bytes())

        timed("pickle.loads of each, and no more", load)
        found = timed("explained", lambda: distlab.flight.explain(folder))
        timed("in words", lambda: str(found))
        timed("as a page", found.html)
        print(found.verdict)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))

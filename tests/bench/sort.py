"""Sort short random records on two workers with little memory, beside coreutils' sort.

    python tests/bench/sort.py [records] [MiB of memory for each worker]

Both get the same file, the same two cores and as much memory all told; the output of
ours is compared byte by byte with theirs. A worker's peak is its largest resident
memory, less what it had when it was idle.
"""

import filecmp
import os
import random
import subprocess
import sys
import tempfile
import threading
import time

import psutil

from distlab.dataflow import MapReduce
from distlab.units import MB, MiB, readable_bytes

WORKERS, REDUCERS = 2, 8


def mapper(line):
    """Make the record its own key."""
    yield line, ""


def reducer(line, values):
    """Keep records that are there several times."""
    yield from values


def by_range(line, reducers):
    """Give the first letters to the first reducer, so that the parts are in order."""
    return int(line[:3], 16) * reducers // 0x1000


def records(path, count):
    """Write lines of 10 to 20 random hexadecimal digits."""
    rng = random.Random(1)
    with open(path, "w") as file:
        for _ in range(0, count, 1000):
            digits = f"{rng.getrandbits(20 * 4 * 1000):020000x}"
            ends = (at + rng.randrange(10, 21) for at in range(0, 20000, 20))
            lines = zip(range(0, 20000, 20), ends, strict=True)
            file.write("".join(f"{digits[a:b]}\n" for a, b in lines))


class Peaks:
    """Watch the resident memory of the workers while the body runs."""

    def __enter__(self):
        self.idle, self.most, self._done = {}, {}, threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def _watch(self):
        while not self._done.wait(0.05):
            for server in psutil.Process().children():
                for worker in server.children():
                    self._look(worker.pid)

    def _look(self, pid):
        try:
            with open(f"/proc/{pid}/status") as file:
                fields = dict(line.split(":", 1) for line in file)
            now, most = (int(fields[f"Vm{x}"].split()[0]) for x in ("RSS", "HWM"))
        except (OSError, KeyError):
            return  # it has ended
        self.idle.setdefault(pid, now * 1024)
        self.most[pid] = most * 1024

    def __exit__(self, *_):
        self._done.set()
        self._thread.join()

    @property
    def above_idle(self):
        """The largest of the workers' peaks."""
        return max(self.most[pid] - self.idle[pid] for pid in self.most)


def ours(path, memory_bytes, folder):
    """Sort the file; return seconds, the path of the sorted lines, output and peak."""
    MapReduce(mapper, reducer).run(["warm up"])  # starts the process server
    job = MapReduce(mapper, reducer, partitioner=by_range)
    with Peaks() as peaks:
        began = time.perf_counter()
        output = job.run(
            path,
            workers=WORKERS,
            reducers=REDUCERS,
            memory_bytes=memory_bytes,
            workdir=os.path.join(folder, "job"),
        )
        took = time.perf_counter() - began
    result = os.path.join(folder, "ours")
    with open(result, "w") as file:
        file.writelines(f"{line}\n" for line, _ in output)
    return took, result, output, peaks.above_idle


def theirs(path, memory_bytes, folder):
    """Have coreutils sort it; return seconds and the path of the sorted lines."""
    result = os.path.join(folder, "theirs")
    command = ["sort", f"--parallel={WORKERS}", f"-S{WORKERS * memory_bytes}b"]
    began = time.perf_counter()
    subprocess.run(
        [*command, "-T", folder, "-o", result, path],
        env={**os.environ, "LC_ALL": "C"},
        check=True,
    )
    return time.perf_counter() - began, result


def main():
    """Print the table."""
    count = int(sys.argv[1]) if sys.argv[1:] else 10_000_000
    memory = (int(sys.argv[2]) if sys.argv[2:] else 128) * MiB
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "records")
        records(path, count)
        size = os.path.getsize(path)
        took, result, output, peak = ours(path, memory, folder)
        peer_took, expected = theirs(path, memory, folder)
        assert filecmp.cmp(result, expected, shallow=False)
    counted = output.counters
    print(f"{counted.output_records:,} records, {readable_bytes(size)}", end="")
    print(f", {WORKERS} workers with {memory // MiB} MiB each")
    print(f"spilled           {readable_bytes(counted.spilled_bytes):>12}")
    print(f"worker's peak     {peak / MB:9.0f} MB of {memory / MB:.0f} MB")
    print(f"ours              {took:9.1f} s {count / took:14,.0f} records/s")
    print(f"coreutils' sort   {peer_took:9.1f} s {count / peer_took:14,.0f} records/s")


if __name__ == "__main__":
    main()

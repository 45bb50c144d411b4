"""Counters of a job: records and bytes at each stage, under the usual names."""

from dataclasses import asdict, dataclass

from distlab.units import readable_bytes

__all__ = ["Counters"]


@dataclass(frozen=True)
class Counters:
    """Records and bytes at each stage of a job; every task counts once.

    input: lines read. mapped: pairs that the mapper emitted. spilled: pairs written to
    disk before the end of their map task, because memory was short. shuffled: pairs
    that went from map to reduce tasks, after the combiner. output: pairs written by the
    reduce tasks.
    skipped: lines left out because the mapper failed on them.
    map_attempts, reduce_attempts: tasks handed out, failed, lost and backups included.
    """

    input_records: int = 0
    input_bytes: int = 0
    mapped_records: int = 0
    spilled_records: int = 0
    spilled_bytes: int = 0
    shuffled_records: int = 0
    shuffled_bytes: int = 0
    output_records: int = 0
    output_bytes: int = 0
    skipped_records: int = 0
    map_tasks: int = 0
    reduce_tasks: int = 0
    map_attempts: int = 0
    reduce_attempts: int = 0

    def rows(self) -> list[tuple[str, str, str]]:
        """Return (stage, records, bytes) as text, in the order in which data moves."""
        counted, rows = asdict(self), []
        for what in ("input", "mapped", "spilled", "shuffled", "output"):
            size = counted.get(f"{what}_bytes")
            shown = "" if size is None else readable_bytes(size)
            rows.append((what, f"{counted[f'{what}_records']:,}", shown))
        return rows

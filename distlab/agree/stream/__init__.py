"""A log, and jobs of operators that read it: what exactly once means.

log, channels        records with offsets; numbered frames, credit
broker, groups       the log's node: producers, transactions, consumer groups
tasks, coordinator   attempts, snapshots, checkpoints
source, operators    key_by, barriers, windows, sinks
job, kills           the word count and its truth; in processes killed at random
monitors, bugs       what must hold, and seven ways to break it
"""

from distlab.agree.stream.broker import Broker
from distlab.agree.stream.bugs import BUGS, fuzz_job, hunt
from distlab.agree.stream.coordinator import CheckpointCoordinator
from distlab.agree.stream.job import StreamJob, StreamResult, truth, word_count_job
from distlab.agree.stream.kills import run_with_kills
from distlab.agree.stream.log import LogBatch, PartitionLog
from distlab.agree.stream.monitors import idle_inputs_ignored, stream_monitors
from distlab.agree.stream.operators import KeyedCount
from distlab.agree.stream.source import SourceTask
from distlab.agree.stream.tasks import BROKER, COORDINATOR, Snapshot, StreamTask

__all__ = [
    "BROKER",
    "BUGS",
    "COORDINATOR",
    "Broker",
    "CheckpointCoordinator",
    "KeyedCount",
    "LogBatch",
    "PartitionLog",
    "Snapshot",
    "SourceTask",
    "StreamJob",
    "StreamResult",
    "StreamTask",
    "fuzz_job",
    "hunt",
    "idle_inputs_ignored",
    "run_with_kills",
    "stream_monitors",
    "truth",
    "word_count_job",
]

"""A log, and jobs of operators that read it: what exactly once means.

log, channels    records with offsets; frames in order     broker, groups    the log's node
tasks            attempts and snapshots    source, operators    barriers, windows, sinks
coordinator      checkpoints               job      word count, its truth
monitors, bugs   what must hold, and seven ways to break it
"""

from distlab.agree.stream.job import StreamJob, StreamResult, truth, word_count_job

__all__ = ["StreamJob", "StreamResult", "truth", "word_count_job"]

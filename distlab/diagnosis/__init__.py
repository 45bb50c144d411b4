"""The diagnosis of a job: who waits for whom and why, computed once and told once.

    notes of ranks ─▶ NotesGraph ─┐
    dumps of ranks ─▶ DumpsGraph ─┴▶ faults ─▶ verdict ─▶ story, page, JSON

For a world in a cell, a launched script, a watched job, and a dead job's dumps.
"""

from distlab.diagnosis.failure import Failure, RankOutcome
from distlab.diagnosis.graph import Fault, WaitForGraph
from distlab.diagnosis.notes import (
    NotesGraph,
    begun_in_vain,
    group_in_words,
    stuck_ranks,
)
from distlab.diagnosis.scene import Scene, how_it_died
from distlab.diagnosis.story import progress, tell
from distlab.diagnosis.verdict import verdict
from distlab.diagnosis.words import agreeing, ranks_in_words

__all__ = ["Failure", "Fault", "NotesGraph", "RankOutcome", "Scene", "WaitForGraph"]
__all__ += ["agreeing", "begun_in_vain", "group_in_words", "how_it_died", "progress"]
__all__ += ["ranks_in_words", "stuck_ranks", "tell", "verdict"]

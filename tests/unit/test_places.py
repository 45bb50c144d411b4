"""Where a rank is, is told in the learner's own code."""

from pathlib import Path

import distlab
from distlab.calls.failure_location import learners_frames

FOLDER = Path(distlab.__file__).parent
OWN = ("/home/me/ring.py", 7, "ring")
RING = (str(FOLDER / "collectives" / "all_reduce.py"), 40, "ring_all_reduce")
COMM = (str(FOLDER / "comm" / "comm.py"), 60, "send")


def test_the_learners_own_frames_come_before_the_librarys():
    assert learners_frames([OWN, RING, COMM]) == [OWN]
    assert learners_frames([RING, COMM]) == [RING]


def test_a_rank_that_only_loads_the_library_is_nowhere_yet():
    package = str(FOLDER / "collectives" / "__init__.py")
    loading = [(package, 60, "_algorithms"), (RING[0], 1, "<module>")]
    assert learners_frames(loading) == []

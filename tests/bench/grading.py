"""Twenty submissions of the ring exercise: nbgrader as it comes, and `distlab grade`.

    python tests/bench/grading.py [--few]

Both grade the same files, one after the other, each in a course of its own. The first
course has nbgrader's default settings, and only its folders' names: one submission
after another, each in a kernel that is started for it and imports torch, its checks in
ordinary processes of that kernel. The second has the course's nbgrader_config.py:
`distlab grade`, submissions and checks in one sandbox, forked from a process that has
imported torch. CPU seconds are of all processes together; where others use the machine,
they say more than the clock. `--few` takes three submissions. The marks have to be the
same.
"""

import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from nbgrader.api import Gradebook

ROOT = Path(__file__).parents[2]
STEM = "10_ring_all_reduce"
PLAIN = """\
c = get_config()
c.CourseDirectory.source_directory = "solutions"
c.CourseDirectory.release_directory = "exercises"
c.ClearSolutions.code_stub = {"python": 'raise NotImplementedError("write this step")'}
c.ExecutePreprocessor.timeout = 180
"""


def make_course(folder, config, count):
    """Make a course with `count` submissions of the solution."""
    folder.mkdir()
    (folder / "nbgrader_config.py").write_text(config)
    solution = ROOT / "solutions" / STEM / f"{STEM}.ipynb"
    (folder / "solutions" / STEM).mkdir(parents=True)
    shutil.copy(solution, folder / "solutions" / STEM)
    call(folder, "nbgrader", "generate_assignment", STEM)
    for number in range(count):
        submitted = folder / "submitted" / f"student-{number:02}" / STEM
        submitted.mkdir(parents=True)
        shutil.copy(folder / f"solutions/{STEM}/{STEM}.ipynb", submitted)


def call(folder, *command):
    """Return the seconds and the CPU seconds that a command takes."""
    tools = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    paths = {"PATH": tools, "PYTHONPATH": str(ROOT)}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begun = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=folder,
        env=os.environ | paths,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.monotonic() - begun, cpu_s


def scores(folder):
    """Return the points of each student."""
    with Gradebook(f"sqlite:///{folder}/gradebook.db") as gradebook:
        return {s.student.id: s.score for s in gradebook.assignment_submissions(STEM)}


def main():
    """Measure, and print the table."""
    count = 3 if "--few" in sys.argv else 20
    home = Path(tempfile.mkdtemp())
    config = (ROOT / "nbgrader_config.py").read_text()
    make_course(home / "plain", PLAIN, count)
    make_course(home / "ours", config, count)
    rows = {
        "nbgrader autograde": call(home / "plain", "nbgrader", "autograde", STEM),
        "distlab grade": call(home / "ours", "distlab", "grade", STEM),
    }
    assert scores(home / "plain") == scores(home / "ours")
    marks = sorted(set(scores(home / "ours").values()))
    print(f"{count} submissions of {STEM}, marks {marks}")
    print(f"{'':24}{'seconds':>10}{'each':>8}{'CPU s each':>12}")
    for name, (seconds, cpu_s) in rows.items():
        print(f"{name:24}{seconds:10.1f}{seconds / count:8.1f}{cpu_s / count:12.1f}")
    plain, ours = rows.values()
    faster, less = (slow / fast for slow, fast in zip(plain, ours, strict=True))
    print(f"{faster:.1f} times faster, {less:.1f} times less CPU")
    shutil.rmtree(home)


if __name__ == "__main__":
    main()

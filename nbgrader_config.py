"""nbgrader's layout for this course; see docs/instructors.md.

solutions/NN_name/NN_name.ipynb    what instructors edit
solutions/NN_name/variants/        answers that prove its checks; never copied
exercises/NN_name/NN_name.ipynb    what `nbgrader generate_assignment` makes of it
exercises/AGENTS.md                goes into each of these: how an assistant helps
submitted/WHO/NN_name/...          what students submit
"""

import shutil
from pathlib import Path

c = get_config()  # noqa: F821

c.CourseDirectory.course_id = "distlab"

# Who finds the gradebook locked waits for its turn: formgrader, while you grade.
_gradebook = Path(__file__).absolute().with_name("gradebook.db")
c.CourseDirectory.db_url = f"sqlite:///{_gradebook}?timeout=60"

c.CourseDirectory.source_directory = "solutions"
c.CourseDirectory.release_directory = "exercises"
c.CourseDirectory.ignore = [
    ".ipynb_checkpoints",
    "*.pyc",
    "__pycache__",
    "feedback",
    "variants",
]


def _add_agents(notebooks, **_):
    """Put how a learner's assistant should help beside the exercise it generated."""
    exercises = Path(__file__).absolute().with_name("exercises")
    stem = Path(notebooks[0]).parent.name
    shutil.copyfile(exercises / "AGENTS.md", exercises / stem / "AGENTS.md")


c.GenerateAssignment.post_convert_hook = _add_agents

# Files that students submit are named ada_10_ring_all_reduce.ipynb.
c.FileNameCollectorPlugin.named_regexp = (
    r".*/(?P<student_id>[^/]+?)_(?P<file_id>\d\d_\w+)"
)

# The stub raises, so that an exercise that nobody has touched cannot pass by returning.
c.ClearSolutions.code_stub = {"python": 'raise NotImplementedError("write this step")'}

# A submission is the instructor's notebook with its answers filled in (Filled),
# whatever was done to the other cells. Its code runs in a sandbox, and its grade cells
# are judged outside (InSandbox takes the place of nbgrader's Execute).
instructor = "distlab.instructor"
c.Autograde.sanitize_preprocessors = [
    f"{instructor}.skeleton.Filled",
    "nbgrader.preprocessors.OverwriteKernelspec",
    "nbgrader.preprocessors.OverwriteCells",
    "nbgrader.preprocessors.CheckCellMetadata",
]
c.Autograde.autograde_preprocessors = [
    f"{instructor}.autograde.InSandbox",
    "nbgrader.preprocessors.LimitOutput",
    "nbgrader.preprocessors.SaveAutoGrades",
    "nbgrader.preprocessors.AssignLatePenalties",
    "nbgrader.preprocessors.CheckCellMetadata",
]

# A student sees that there was a hidden case, its verdict and its hint, and no more.
c.GenerateFeedback.exporter_class = f"{instructor}.feedback.FeedbackPage"
c.GenerateFeedback.preprocessors = [
    "nbgrader.preprocessors.GetGrades",
    "nbconvert.preprocessors.CSSHTMLHeaderPreprocessor",
    f"{instructor}.feedback.StudentsView",
]

# Seconds for a cell of the submission, for one step's checks, and for all together. One
# run of a check may take 30 s; the environment's DISTLAB_CHECK_SECONDS changes that.
# DISTLAB_PATIENCE=3 makes all of these three times as long, on a busy machine.
# c.InSandbox.cell_timeout, c.InSandbox.step_timeout = 60, 180
# c.InSandbox.exercise_timeout = 600

# Where the system offers no sandbox nothing is graded, unless you insist.
# c.InSandbox.allow_unsafe = True

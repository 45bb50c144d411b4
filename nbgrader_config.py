"""nbgrader's layout for this course; see "For instructors" in README.md.

solutions/NN_name/NN_name.ipynb    what instructors edit
exercises/NN_name/NN_name.ipynb    what `nbgrader generate_assignment` makes of it
"""

c = get_config()  # noqa: F821

c.CourseDirectory.course_id = "distlab"
c.CourseDirectory.source_directory = "solutions"
c.CourseDirectory.release_directory = "exercises"

# The stub raises, so that an exercise that nobody has touched cannot pass by returning.
c.ClearSolutions.code_stub = {"python": 'raise NotImplementedError("write this step")'}

# nbgrader kills a cell after this many seconds; a whole check takes about 20.
c.ExecutePreprocessor.timeout = 180
c.ExecutePreprocessor.iopub_timeout = 60

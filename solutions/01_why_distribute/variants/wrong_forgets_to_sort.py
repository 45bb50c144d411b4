"""Gives each task to who has least, in the order of the list."""

POINTS = 6.0
HINT = "Which task do you place first"
REPLACE = {
    "sorted(tasks, key=size_of, reverse=True)": "tasks",
    "work(task) for task in group": "map(work, group)",
}

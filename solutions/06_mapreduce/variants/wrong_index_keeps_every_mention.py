"""Sorts the names, and keeps a name for each time that the word occurs."""

POINTS = 6.0
HINT = "in the list each name stands once"


def index_reducer(word, names):
    return sorted(names)

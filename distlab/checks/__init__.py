'''Checks of exercises: one file per exercise, and a kit that all of them use.

    grade(3, checks.reduce_scatter, reduce_scatter, [(4, 8), (2, 6)], hidden)

    grade ──▶ check(function, *case) ──▶ kit: on_ranks, on_nodes, on_workers, call
      ▲          │                        │  the function runs in processes of its own
      │          │ raises Wrong(found, **facts)   ◀── plain data, and the trace
      └── the first Hint whose `when(facts)` holds

A check compares what the learner's function did with an oracle. It raises `Wrong` with
what it found, `Inconclusive` where a run shows nothing, or returns. A whole one:

    """Exercise 99: every rank ends with the sum of all ranks' numbers."""

    from distlab.checks.kit import Hint, Wrong, called, check
    from distlab.checks.kit import difference, draws, on_ranks

    @check("{} ranks, {} elements")                      the title of a case
    def total(function, n, length):
        inputs = draws(n, length)                        new for each run, one per rank
        report = on_ranks(_probe, function, inputs)
        expected = [sum(column) for column in zip(*inputs)]
        if wrong := difference([(expected, yours) for yours in report.results]):
            found, facts = wrong                         a table: expected and yours
            raise Wrong(found, kept=report.results == inputs, **facts)

    def _probe(comm, function, inputs):                  runs in each rank
        import torch
        tensor = torch.tensor(inputs)
        called(function, comm, tensor)                   the learner's function
        return tensor.tolist()                           plain data

    HINTS = [Hint(lambda facts: facts["kept"], ["A nudge.", "More.", "Nearly all."])]

To add an exercise:

1. `distlab/checks/total.py` as above. `WITHOUT = ("distlab.collectives", ...)`, given
   as `without=`, names modules that the exercise asks for: its processes lack them.
2. `solutions/99_total/99_total.ipynb`, an nbgrader source. A locked cell imports
   `grade` and `hint` from here, and `from distlab.checks import total as checks`;
   solution cells have `### BEGIN SOLUTION`; a grade cell ends with `grade(...)` as
   above, and sets `hidden` between `### BEGIN HIDDEN TESTS` and `### END HIDDEN TESTS`.
   Grade cells use imports, their own constants and the learner's names, nothing else.
3. `solutions/99_total/variants/`: at least two right answers that differ and five wrong
   ones that people make, see `distlab.checks.kit.variants`.
4. `distlab prove 99` shows the points and the hint of each.
5. `nbgrader generate_assignment 99_total` makes the exercise.
'''

from distlab.checks.kit.hints import hint
from distlab.checks.kit.verdict import grade, grade_each

__all__ = ["grade", "grade_each", "hint"]

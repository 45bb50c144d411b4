'''Checks of exercises: one file per exercise, and a kit that all of them use.

    grade(3, checks.reduce_scatter, reduce_scatter, [(4, 8), (2, 6)], hidden)

    grade ──▶ check(function, *case) ──▶ kit: on_ranks, on_nodes, on_workers, call
      ▲          │                        │  the function runs in processes of its own
      │          │ raises Wrong(found, **facts)   ◀── plain data, and the trace
      └── the first Hint whose `when(facts)` holds

A check compares a run of the learner's function with an oracle. It raises `Wrong` with
the difference, `Inconclusive` if a run shows nothing, or returns. A complete one:

    """Exercise 99: every rank ends with the sum of all ranks' numbers."""

    from distlab.checks import kit
    from distlab.checks.kit import Hint, Wrong, called, check, difference, draws

    WITHOUT = kit.modules_of("distlab.collectives")      the ranks lack the solution

    @check("{} ranks, {} elements")                      the title of a case
    def total(function, n, length):
        """Check that every rank ends with the sum."""
        inputs = draws(n, length)                        new for each run, one per rank
        report = kit.on_ranks(_probe, function, inputs, without=WITHOUT)
        expected = [sum(column) for column in zip(*inputs, strict=True)]
        if wrong := difference([(expected, yours) for yours in report.results]):
            found, facts = wrong                         a table: expected and yours
            raise Wrong(found, kept=report.results == inputs, **facts)

    def _probe(comm, function, inputs):                  runs in each rank
        import torch
        tensor = torch.tensor(inputs)
        called(function, comm, tensor)                   the learner's function
        return tensor.tolist()                           plain data

    HINTS = [Hint(lambda facts: facts["kept"], ["A nudge.", "More.", "Nearly all."])]

`comm` is a `distlab.comm.Comm`, and `report.trace` a `distlab.trace.Trace`, with
`bytes_sent(rank)`, `messages()`, `rounds()` and `events`; `help` has the rest.

To add an exercise:

1. `distlab/checks/total.py` as above. `without=` withholds the solution: the processes
   lack the package and all its modules, so that importing them is no answer.
2. `solutions/99_total/99_total.ipynb`, an nbgrader source with descriptive cell ids;
   begin with a copy of one, such as 00, for nbgrader's metadata. Text cells have none.
   A locked cell imports `grade` and `hint` from here, and `from distlab.checks import
   total as checks`; solution cells have their answers between `### BEGIN SOLUTION` and
   `### END SOLUTION`; a grade cell is

       hidden = []
       ### BEGIN HIDDEN TESTS
       hidden = [(3, 9), (7, 14)]
       ### END HIDDEN TESTS
       grade(3, checks.total, total, [(4, 8), (2, 6)], hidden)

   and uses imports, its own constants and the learner's names, nothing else. Its
   points are in its metadata, too.
3. `solutions/99_total/variants/`: at least two right answers that differ (`HINT = ""`)
   and five wrong ones, see `distlab.checks.kit.answer_variants`. One calls the library;
   the hint that it meets is among the `COMMON` ones of `distlab.checks.kit.hints`.
4. In the folder of the project, `distlab prove 99` shows the points and the hint of
   each, and which hints no answer meets.
5. `nbgrader generate_assignment 99_total --no-db` makes `exercises/99_total`, which is
   committed with its AGENTS.md.
6. `pytest tests/house`, `pytest tests/lessons/test_exercises.py -k 99_` prove it as CI
   does, with the linter. A lesson of the same name has its row in README.md.
'''

from distlab.checks.kit.grading import grade, grade_each
from distlab.checks.kit.hints import hint

__all__ = ["grade", "grade_each", "hint"]

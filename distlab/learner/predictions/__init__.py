"""Predict, then run: a guess that the learner commits to before the experiment.

    guess = predict("How many megabytes does rank 0 send?", unit="MB")

    report = run(...)                                   # a later cell
    guess.compare(report.trace.bytes_sent(0) / MB)      # as last line: one line

    predict() ──▶ form ──▶ keep() ──▶ guesses.json ──▶ every form and every
                                                       comparison of that question

Nothing here waits for an answer: a notebook that runs without a learner continues, and
its comparisons show "guess first" instead of the numbers. Importing is light.

`stub` marks a function that the learner writes, and names one to use until then.
"""

from distlab.learner.predictions.guess import Guess, predict
from distlab.learner.stub import stub

__all__ = ["Guess", "predict", "stub"]

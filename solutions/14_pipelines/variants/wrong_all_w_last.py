"""All W in the end: no bubble, and every microbatch is held until then."""

POINTS = 7.0
HINT = "Which F runs while the stage is full"


def smaller_bubble(stages, microbatches):
    rows = [[*row] for row in one_f_one_b(stages, microbatches)]
    return [row + [("W", m) for m in range(microbatches)] for row in rows]

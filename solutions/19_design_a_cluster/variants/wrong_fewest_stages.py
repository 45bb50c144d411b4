"""Computes the steps of the eight layouts with the fewest stages, and no others."""

POINTS = 7.0
HINT = "Another layout that fits is faster"


def choose(model, layouts, room, rate, step_seconds):
    fit = [i for i, one in enumerate(layouts) if one["memory"] <= room]
    fit.sort(key=lambda i: (layouts[i]["pp"], layouts[i]["tp"]))
    return min(fit[:8], key=step_seconds, default=None)

"""W runs right behind its B: 1F1B's bubble in three kinds of work."""

POINTS = 7.0
HINT = "Which W runs although a B or an F could"
REPLACE = {
    "if m >= stage:": "if True:",
    'row.append(("W", m - stage))': 'row.append(("W", m))',
    "for m in range(max(0, microbatches - stage), microbatches)]": "for m in ()]",
}

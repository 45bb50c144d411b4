"""Takes a write without an answer for one that was never done."""

POINTS = 7.0
HINT = "may have taken effect all the same"
REPLACE = {
    '    lost = [one for one in operations if one.outcome == "unknown"]\n': "",
    '    kept += [one for one in lost if one.op == "write"]\n': "",
}

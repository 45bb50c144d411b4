"""Begins the second lap with its own chunk, which is not the complete one."""

POINTS = 3.0
HINT = "with which chunk does the second lap begin"
REPLACE = {
    "target = chunks[(rank - step) % n]": "target = chunks[(rank - step - 1) % n]",
    "chunks[(rank + 1 - step) % n], target": "chunks[(rank - step) % n], target",
}

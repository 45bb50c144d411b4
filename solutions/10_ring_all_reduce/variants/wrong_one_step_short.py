"""Stops the reduce-scatter phase one step too early."""

POINTS = 0.0
HINT = "A contribution is missing"
REPLACE = {
    "for step in range(n - 1):\n"
    '        comm.mark(f"reduce-scatter, step {step + 1} of {n - 1}")': (
        "for step in range(max(1, n - 2)):"
    ),
    "return (place + 1) % n": "return (place - step - 1) % n",
}

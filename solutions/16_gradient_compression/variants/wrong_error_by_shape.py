"""Keeps an error for each shape, which two parameters may have."""

POINTS = 6.0
HINT = "what is the key of your error?"
REPLACE = {
    "self.errors.get(p, ": "self.errors.get(p.shape, ",
    "zip(parameters, rest)": "zip([p.shape for p in parameters], rest)",
}

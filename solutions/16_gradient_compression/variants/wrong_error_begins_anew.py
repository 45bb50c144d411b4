"""Has an error, and sets it to zeros in each step."""

POINTS = 3.0
HINT = "It is kept from step to step"
REPLACE = {
    "self.errors.update(zip(parameters, rest))": "self.errors = {}",
}

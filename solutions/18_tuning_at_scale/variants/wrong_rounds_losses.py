"""Rounds losses, so that others are equal."""

POINTS = 0.0
HINT = "notes the loss of this trial"
REPLACE = {
    "self.losses[rung][trial] = loss\n": "self.losses[rung][trial] = round(loss, 1)\n",
}

"""Sends the same chunk in every step, so that no sum is passed on."""

POINTS = 0.0
HINT = "sends the same chunk in two steps"
REPLACE = {"chunks[(place - step) % n], arrived": "chunks[place], arrived"}

"""Takes another element of the message for the version of the gradient."""

POINTS = 7.0
HINT = "the versions that push was given"
REPLACE = {"int(message[-1])": "int(message[0])"}

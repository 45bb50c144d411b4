"""Returns while its sends may still go on."""

POINTS = 0.0
HINT = "Keep the requests, and wait for all of them"
REPLACE = {"    for request in sent:\n        request.wait()": "    sent.clear()"}

"""Fills the message once, and sends what has been received into it since."""

POINTS = 7.0
HINT = "One buffer serves"
REPLACE = {
    "            message[:-1] = server.values\n": "",
    "    waiting, computing = set(ready), set()\n": (
        "    waiting, computing = set(ready), set()\n    message[:-1] = server.values\n"
    ),
}

"""Steps a view, with which all parameters stay in memory."""

POINTS = 3.0
HINT = "Layers stay after they have worked"
REPLACE = {"chunk(n)[comm.rank].clone()": "chunk(n)[comm.rank]"}

"""Steps a view, with which all parameters stay in memory."""

POINTS = 0.0
HINT = "Do own_part and .grad have memory of their own?"
REPLACE = {"chunk(n)[comm.rank].clone()": "chunk(n)[comm.rank]"}

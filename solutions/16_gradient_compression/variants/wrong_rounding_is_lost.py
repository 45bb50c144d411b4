"""Keeps as error only the elements that it did not send."""

POINTS = 7.0
HINT = "Which whole numbers fit in 16 bits"
REPLACE = {
    "rest = (whole - sent[comm.rank]).split(": (
        "rest = torch.where(sent[comm.rank] == 0, whole, 0.0).split("
    ),
}

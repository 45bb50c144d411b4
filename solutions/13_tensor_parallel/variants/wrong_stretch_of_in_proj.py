"""Takes a stretch of in_proj's rows, which has no q, k and v of one head."""

POINTS = 7.0
HINT = "q of all heads"
REPLACE = {
    "return tensor.unflatten(0, (3, heads, d))[:, mine].flatten(0, 2)": (
        "return tensor[3 * mine.start * d : 3 * mine.stop * d]"
    )
}

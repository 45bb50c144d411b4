"""Has each add replace the one before."""

POINTS = 7.0
HINT = "a read is the sum of all adds"
REPLACE = {
    "ups, downs = ups + max(call.value, 0), downs + max(-call.value, 0)": (
        "ups, downs = max(call.value, 0), max(-call.value, 0)"
    )
}

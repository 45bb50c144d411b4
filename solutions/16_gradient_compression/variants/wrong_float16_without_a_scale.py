"""Sends float16, in which small gradients are 0."""

POINTS = 7.0
HINT = "Which whole numbers fit in 16 bits"
REPLACE = {
    "flat[indices].bfloat16()": "flat[indices].half()",
    "index_type, torch.bfloat16": "index_type, torch.half",
}

"""Joins heads without swapping heads and tokens back first."""

POINTS = 7.0
HINT = "Which dims are heads, tokens and head size"
REPLACE = {
    "heads = scaled_dot_product_attention(q, k, v).transpose(0, 1).flatten(1)": (
        "heads = scaled_dot_product_attention(q, k, v).reshape(len(x), -1)"
    ),
}

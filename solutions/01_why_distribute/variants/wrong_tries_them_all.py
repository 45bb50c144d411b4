"""Looks at every world size, one after another."""

POINTS = 7.0
HINT = "Do not try them all"


def best_world_size(serial_s, parallel_s, message_s, most):
    def time_s(n):
        return serial_s + parallel_s / n + message_s * (n - 1)

    n = min(range(1, most + 1), key=time_s)
    return n, time_s(1) / time_s(n)

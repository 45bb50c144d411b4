"""Takes the whole number below the root."""

POINTS = 7.0
HINT = "the nearest one is not always the fastest"


def best_world_size(serial_s, parallel_s, message_s, most):
    def time_s(n):
        return serial_s + parallel_s / n + message_s * (n - 1)

    n = int(math.sqrt(parallel_s / message_s)) if message_s else most
    n = min(max(n, 1), most)
    return n, time_s(1) / time_s(n)

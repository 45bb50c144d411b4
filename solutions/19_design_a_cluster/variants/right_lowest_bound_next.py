"""Looks for the lowest bound again and again; finds the spares by a sum of terms."""

POINTS = 10.0
HINT = ""


def survive(job):
    rate = job["gpus"] / job["gpu_mtbf_h"] / 3600
    recovery = (job["detect_s"] + job["restart_s"]) * rate
    interval = (2 * job["save_s"] / rate) ** 0.5
    kept = 1 - (2 * job["save_s"] * rate) ** 0.5 - recovery
    if kept <= 0:
        return None
    mean = job["repair_h"] * 3600 * rate

    def within(spares):
        terms = (
            k * math.log(mean) - mean - math.lgamma(k + 1) for k in range(spares + 1)
        )
        return sum(map(math.exp, terms))

    spares = next(k for k in range(job["nodes"] + 1) if within(k) >= 0.99)
    return interval, job["steps"] * job["step_s"] / kept / 86400, spares


def choose(model, layouts, room, rate, step_seconds):
    left = {
        i: model["flops"]
        * one["batch"]
        * one["length"]
        / (one["tp"] * one["pp"] * one["dp"])
        / rate
        * (1 + (one["pp"] - 1) * one["dp"] * one["microbatch"] / one["batch"])
        for i, one in enumerate(layouts)
        if one["memory"] <= room
    }
    best = None
    while left:
        index = min(left, key=left.get)
        if best and left.pop(index) >= best[0]:
            break
        left.pop(index, None)
        found = step_seconds(index), index
        best = min(best or found, found)
    return best and best[1]

"""Posts receives before the first work; GPipe's B and the last W in reverse."""

POINTS = 10.0
HINT = ""
REPLACE = {
    "for m in range(max(0, microbatches - stage), microbatches)]": (
        "for m in reversed(range(max(0, microbatches - stage), microbatches))]"
    )
}


def gpipe(stages, microbatches):
    backward = [("B", m) for m in reversed(range(microbatches))]
    return [[("F", m) for m in range(microbatches)] + backward for _ in range(stages)]


def play(comm, works, stage):
    before, after = comm.rank - 1, comm.rank + 1
    arriving, sent = {}, []
    for kind, m in works:
        other = {"F": before, "B": after}.get(kind, -1)
        if 0 <= other < comm.world_size:
            arriving[kind, m] = comm.irecv(stage.room(), other)
    for kind, m in works:
        if kind == "W":
            stage.weights(m)
            continue
        there = arriving.pop((kind, m), None)
        do, other = (stage.forward, after) if kind == "F" else (stage.backward, before)
        made = do(m, there and there.wait())
        if 0 <= other < comm.world_size:
            sent.append(comm.isend(made, other))
    for request in sent:
        request.wait()

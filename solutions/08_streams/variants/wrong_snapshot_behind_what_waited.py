"""Takes its snapshot after it has processed what had waited."""

POINTS = 0.0
HINT = "before what has waited is processed"


class Aligned(Operator):
    def on_deploy(self, deploy):
        counts, marks = self.snapshots.get(deploy.checkpoint, ({}, {}))
        self.attempt, self.counts = deploy.attempt, dict(counts)
        self.marks = dict.fromkeys(self.sources, float("-inf")) | marks
        self.arrived, self.held = set(), []
        yield Send(COORDINATOR, Running(self.attempt))

    def on_input(self, source, message):
        if message.attempt != self.attempt:
            return
        if source in self.arrived:
            self.held.append((source, message))
        elif type(message) is Records:
            yield from self.count(source, message)
        else:
            yield from self.align(source, message.checkpoint)

    def count(self, source, records):
        for time, key in records.rows:
            place = time // WINDOW_S * WINDOW_S, key
            self.counts[place] = self.counts.get(place, 0) + 1
        self.marks[source] = records.watermark
        closed = min(self.marks.values()) - WINDOW_S
        for place in sorted(self.counts):
            if place[0] <= closed:
                count = self.counts.pop(place)
                yield Send(COORDINATOR, Result(self.attempt, *place, count))

    def align(self, source, checkpoint):
        self.arrived.add(source)
        if len(self.arrived) < len(self.sources):
            return
        yield Send(COORDINATOR, Barrier(self.attempt, checkpoint))
        held, self.arrived, self.held = self.held, set(), []
        for source, message in held:
            yield from self.on_input(source, message)
        yield from self.save(checkpoint, (dict(self.counts), dict(self.marks)))

"""Writes a snapshot to the first place that no other needs."""

POINTS = 12.0
HINT = ""


class Durable(Aligned):
    def save(self, checkpoint, state):
        used = {self.places[n] for n in self.snapshots}
        free = (place for place in range(len(used) + 1) if str(place) not in used)
        self.snapshots[checkpoint] = state
        self.places[checkpoint] = str(next(free))
        yield Save(self.places[checkpoint], (checkpoint, state))
        yield Sync((self.attempt, checkpoint))

    def on_synced(self, token):
        if token[0] == self.attempt:
            yield Send(COORDINATOR, Ack(*token))

    def on_start(self, saved):
        self.places = {checkpoint: place for place, (checkpoint, _) in saved.items()}
        self.snapshots = dict(saved.values())
        return [Send(COORDINATOR, Started())]


class Frugal(Durable):
    def on_deploy(self, deploy):
        yield from super().on_deploy(deploy)
        self.on_complete(deploy.checkpoint)

    def on_complete(self, checkpoint):
        for n in [n for n in self.snapshots if n < checkpoint]:
            del self.snapshots[n]

"""Has a queue for each input, returns lists, and writes a list to its disk."""

POINTS = 12.0
HINT = ""


class Windows(Operator):
    pass


class Aligned(Windows):
    def on_deploy(self, deploy):
        found = self.snapshots.get(deploy.checkpoint, {"counts": [], "marks": []})
        self.attempt = deploy.attempt
        self.windows = {}
        for start, key, count in found["counts"]:
            self.windows.setdefault(start, {})[key] = count
        self.marks = dict(found["marks"])
        self.queues = {source: [] for source in self.sources}
        self.barriers = {}
        return [Send(COORDINATOR, Running(self.attempt))]

    def on_input(self, source, message):
        if message.attempt != self.attempt:
            return []
        self.queues[source].append(message)
        effects = []
        while any(self.queues[s] for s in self.queues if s not in self.barriers):
            for each in self.sources:
                while self.queues[each] and each not in self.barriers:
                    effects += self.process(each, self.queues[each].pop(0))
            if len(self.barriers) == len(self.sources):
                effects += self.snapshot(self.barriers.popitem()[1])
                self.barriers = {}
        return effects

    def process(self, source, message):
        if isinstance(message, Barrier):
            self.barriers[source] = message.checkpoint
            return []
        for time, key in message.rows:
            window = self.windows.setdefault(time - time % WINDOW_S, {})
            window[key] = window.get(key, 0) + 1
        self.marks[source] = message.watermark
        effects = []
        if len(self.marks) == len(self.sources):
            for start in [*self.windows]:
                if start + WINDOW_S <= min(self.marks.values()):
                    window = self.windows.pop(start)
                    for key in window:
                        result = Result(self.attempt, start, key, window[key])
                        effects.append(Send(COORDINATOR, result))
        return effects

    def snapshot(self, checkpoint):
        counts = [(s, key, n) for s, w in self.windows.items() for key, n in w.items()]
        state = {"counts": counts, "marks": list(self.marks.items())}
        barrier = Send(COORDINATOR, Barrier(self.attempt, checkpoint))
        return [barrier, *self.save(checkpoint, state)]


class Durable(Aligned):
    def save(self, checkpoint, state):
        self.snapshots[checkpoint] = state
        written = Save("log", list(self.snapshots.items()))
        return [written, Sync(Ack(self.attempt, checkpoint))]

    def on_synced(self, token):
        return [Send(COORDINATOR, token)]

    def on_start(self, saved):
        self.snapshots = dict(saved.get("log", []))
        return super().on_start(saved)


class Frugal(Durable):
    def on_complete(self, checkpoint):
        newer = [one for one in self.snapshots.items() if one[0] >= checkpoint]
        self.snapshots = dict(newer)
        return [Save("log", newer)]

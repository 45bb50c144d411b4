"""Stops a worker that was taken for dead, although its job is wanted."""

POINTS = 8.0
HINT = "A worker asks whether its job"


class Frugal(Robust):
    def on_saved(self, trial, step):
        self.saved[trial] = max(step, self.saved.get(trial, 0))

    def start_of(self, trial, rung):
        return max(super().start_of(trial, rung), self.saved.get(trial, 0))

    def wanted(self, trial, rung):
        return trial not in self.losses[rung] and (trial, rung) not in self.lost

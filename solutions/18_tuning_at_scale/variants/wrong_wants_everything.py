"""Has a worker finish a job that has reported."""

POINTS = 8.0
HINT = "A worker asks whether its job"


class Frugal(Robust):
    def on_saved(self, trial, step):
        self.saved[trial] = max(step, self.saved.get(trial, 0))

    def start_of(self, trial, rung):
        return max(super().start_of(trial, rung), self.saved.get(trial, 0))

    def wanted(self, trial, rung):
        return True

"""Which order of events breaks a protocol: `search`, and schedules to `replay`.

    search ─▶ exploration: from `State` to `State` by `transitions`, no real node
           ─▶ shrinking ─▶ replay: a `Schedule` on real nodes, step by step

A state is a value: it can be compared, hashed and made into nodes again.
"""

"""Search for an order of events that breaks a protocol, and `replay` of schedules.

    search ─▶ exploration: from `State` to `State` by `transitions`, no real node
           ─▶ shrinking ─▶ replay: an `EventSchedule` on real nodes, step by step

A state is a value: it can be compared, hashed and turned into nodes again.
"""

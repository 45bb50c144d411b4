"""Which order of events breaks a protocol: the search, and schedules that play.

    search ─▶ explore: states, moves and drafts, no real node  ─▶ shrink ─▶ found
    replay ─▶ rehearsal: a schedule on real nodes, step by step

A `State` is a value: it can be compared, hashed and thawed into nodes again (`frozen`).
"""

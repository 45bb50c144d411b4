"""Nodes as real processes behind a switch, and the one thread that supervises them.

    cluster ─▶ supervisor ─┬─ clients, partitions    calls, links that are cut
         (by requests)     ├─ node_process           a node, its `disk`, its `wire`
                           └─ switch                 between any two nodes

Each process logs its events (`event_log`), which are merged into one trace.
"""

"""Nodes as real processes behind a switch, and the one thread that looks after them.

    cluster ─▶ supervisor ─┬─ clients, partitions    what is asked, what is cut
         (by requests)     ├─ node_process           a node, its `disk`, its `wire`
                           └─ switch                 between any two nodes

Each process writes down what it did (`event_log`), which makes one trace of it all.
"""

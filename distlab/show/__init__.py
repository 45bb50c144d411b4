"""Pictures of runs of ranks, workers and nodes, drawn from their traces.

    from distlab.show import compare, player, scaling, timeline

    player(report)              # the run, step by step: plays in the notebook
    compare(mine, ideal)        # two runs in step, up to where they first differ
    save(report, "ring.gif")    # the player as .html, .svg, .png or .gif
    timeline(report)            # each rank's time: messages, waiting, work
    scaling(measured, ...)      # measured points against predicted lines
    amdahl(0.25)                # the serial part stays, the parallel part shrinks
    ratios(rows, unit="B")      # predicted beside measured, and their ratio
    traffic(runs, ...)          # bytes that each rank sent, against a lower bound
    memory(ranks, ...)          # memory of each rank by kind, against a limit
    shards(layouts, kinds)      # the shards that each rank owns
    streams(report, calls)      # a rank's computation beside its communication
    pipeline(cells)             # stages over time, and their bubble
    tasks(output)               # every worker of a data job, attempt by attempt
    dataflow(splits, runs, parts)  # a small job, pair by pair, from splits to output
    shuffle(output)             # bytes from every map task to every reduce task
    experts(kept, owners)       # tokens of every rank to every expert, and their load
    lineage(rdd)                # a data set's dependencies in stages, and what ran
    histogram(series, ...)      # counts of each value
    matrices(steps, ranks)      # products of matrices that are sharded over ranks
    causal_triangle(layouts, 4)  # blocks of causal attention, by rank and ring step
    mesh(report, dp=2, tp=4)    # groups and bytes along each dimension of a mesh
    topology(graphs)            # the ranks that average with each other, and mixing
    rates(simulated)            # bytes per second of several simulated jobs
    history(verdict)            # clients' operations, and the verdict's reason
    quorums(3, writes=2, reads=2)   # the replicas that a read and a write share
    commit_states(nodes, txn)   # a transaction's state at each node, who is in doubt
    models()                    # consistency models, strong to weak
    partition_log(logs, offsets)    # records by offset, and where each group reads
    event_time(events, marks, window_s=10)  # windows, watermark, late events
    rungs(run)                  # trials of a tuning run by rung, and their promotions
    tradeoff(survey)            # latency against the minority's answered calls
    pareto(options, ...)        # options by two costs, and the front of the best
    source(function)            # the code itself

Each drawing shows itself as the last line of a cell, and its `alt` describes it in
words and numbers. Importing this package is light; matplotlib loads with the first
picture that needs it.
"""

from distlab.show.canvas.picture import Picture
from distlab.show.figures.amdahl import amdahl
from distlab.show.figures.causal_triangle import causal_triangle
from distlab.show.figures.commit_states import commit_states
from distlab.show.figures.dataflow import dataflow
from distlab.show.figures.event_time import event_time
from distlab.show.figures.experts import experts
from distlab.show.figures.goodput_timeline import goodput_timeline
from distlab.show.figures.histogram import histogram
from distlab.show.figures.history import history
from distlab.show.figures.lineage import lineage
from distlab.show.figures.matrices import matrices
from distlab.show.figures.memory import memory
from distlab.show.figures.mesh import mesh
from distlab.show.figures.models import models
from distlab.show.figures.pareto import pareto
from distlab.show.figures.partition_log import partition_log
from distlab.show.figures.pipeline import pipeline
from distlab.show.figures.quorums import quorums
from distlab.show.figures.rates import rates
from distlab.show.figures.ratios import ratios
from distlab.show.figures.rungs import rungs
from distlab.show.figures.scaling import scaling
from distlab.show.figures.shards import shards
from distlab.show.figures.shuffle import shuffle
from distlab.show.figures.streams import streams
from distlab.show.figures.suspicion import suspicion
from distlab.show.figures.tasks import tasks
from distlab.show.figures.timeline import timeline
from distlab.show.figures.topology import topology
from distlab.show.figures.tradeoff import tradeoff
from distlab.show.figures.traffic import traffic
from distlab.show.player import Comparison, Player, compare, folded, player, save
from distlab.show.source import source

__all__ = [
    "Comparison",
    "Picture",
    "Player",
    "amdahl",
    "causal_triangle",
    "commit_states",
    "compare",
    "dataflow",
    "event_time",
    "experts",
    "folded",
    "goodput_timeline",
    "histogram",
    "history",
    "lineage",
    "matrices",
    "memory",
    "mesh",
    "models",
    "pareto",
    "partition_log",
    "pipeline",
    "player",
    "quorums",
    "rates",
    "ratios",
    "rungs",
    "save",
    "scaling",
    "shards",
    "shuffle",
    "source",
    "streams",
    "suspicion",
    "tasks",
    "timeline",
    "topology",
    "tradeoff",
    "traffic",
]

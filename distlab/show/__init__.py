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
    mesh(report, dp=2, tp=4)    # groups and bytes along each dimension of a mesh
    topology(graphs)            # the ranks that average with each other, and mixing
    rates(simulated)            # bytes per second of several simulated jobs
    history(verdict)            # clients' operations, and the verdict's reason
    quorums(3, writes=2, reads=2)   # the replicas that a read and a write share
    models()                    # consistency models, strong to weak
    tradeoff(survey)            # latency against the minority's answered calls
    source(function)            # the code itself

Each drawing shows itself as the last line of a cell, and its `alt` describes it in
words and numbers. Importing this package is light; matplotlib loads with the first
picture that needs it.
"""

from distlab.show.amdahl import amdahl
from distlab.show.dataflow import dataflow
from distlab.show.experts import experts
from distlab.show.film import Comparison, Player, compare, folded, player, save
from distlab.show.histogram import histogram
from distlab.show.history import history
from distlab.show.lifeline import lifeline
from distlab.show.lineage import lineage
from distlab.show.matrices import matrices
from distlab.show.memory import memory
from distlab.show.mesh import mesh
from distlab.show.models import models
from distlab.show.picture import Picture
from distlab.show.pipeline import pipeline
from distlab.show.quorums import quorums
from distlab.show.rates import rates
from distlab.show.ratios import ratios
from distlab.show.scaling import scaling
from distlab.show.shards import shards
from distlab.show.shuffle import shuffle
from distlab.show.source import source
from distlab.show.streams import streams
from distlab.show.suspicion import suspicion
from distlab.show.tasks import tasks
from distlab.show.timeline import timeline
from distlab.show.topology import topology
from distlab.show.tradeoff import tradeoff
from distlab.show.traffic import traffic

__all__ = [
    "Comparison",
    "Picture",
    "Player",
    "amdahl",
    "compare",
    "dataflow",
    "experts",
    "folded",
    "histogram",
    "history",
    "lifeline",
    "lineage",
    "matrices",
    "memory",
    "mesh",
    "models",
    "pipeline",
    "player",
    "quorums",
    "rates",
    "ratios",
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

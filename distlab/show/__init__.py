"""Pictures of what ranks, workers and nodes did, drawn from the trace of a run.

    from distlab.show import compare, player, scaling, timeline

    player(report)              # the run, step by step: plays in the notebook
    compare(mine, ideal)        # two runs in step, up to where they first differ
    save(report, "ring.gif")    # the player as .html, .svg, .png or .gif
    timeline(report)            # who did what when, and who waited for whom
    scaling(measured, ...)      # measured points against predicted lines
    amdahl(0.25)                # the serial part stays, the parallel part shrinks
    ratios(rows, unit="B")      # predicted beside measured, and their ratio
    traffic(runs, ...)          # bytes that each rank sent, against a lower bound
    memory(ranks, ...)          # memory of each rank by kind, against a limit
    shards(layouts, kinds)      # which rank owns which shard of what
    streams(report, calls)      # what a rank computes beside what it communicates
    pipeline(cells)             # stages over time, and their bubble
    tasks(output)               # what every worker of a data job did, try by try
    dataflow(splits, runs, parts)  # a small job, pair by pair, from splits to output
    shuffle(output)             # bytes from every map task to every reduce task
    experts(kept, owners)       # tokens of every rank to every expert, and their load
    lineage(rdd)                # what a data set is made from, in stages, and what ran
    histogram(series, ...)      # how often each value occurs
    matrices(steps, ranks)      # products of matrices that ranks have cut
    mesh(report, dp=2, tp=4)    # who talks to whom along each dimension of a mesh
    topology(graphs)            # which ranks hear each other, and how fast that mixes
    rates(simulated)            # what several simulated jobs moved over time
    history(verdict)            # what clients asked and were told, and why it cannot be
    quorums(3, writes=2, reads=2)   # which replicas a read and a write share
    models()                    # consistency models, strong to weak
    tradeoff(survey)            # latency against what the minority answers
    source(function)            # the code itself

Each drawing shows itself as the last line of a cell, and its `alt` says in words and
numbers what is to be seen. Importing this package is light; matplotlib loads with the
first picture that needs it.
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

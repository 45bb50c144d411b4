"""What the process servers of grading import before they fork.

They are several: whatever is imported makes each fork slower, and a marker has many.
"""

__all__ = ["CHECKING", "DESK", "KERNEL"]

CHECKING = (
    "torch",
    "torch.distributed",
    "numpy.random",
    "cloudpickle",
    "distlab.launch.rank",
    "distlab.dataflow.worker",
    "distlab.dataflow.rdd.executor",
    "distlab.network.cluster.inside",
    "distlab.grading",
    "distlab.grading.marking.marker",
)
# distlab before ipykernel: where that is imported first, distlab takes the process for
# a notebook's kernel, and starts a server for it.
KERNEL = (
    *CHECKING,
    "matplotlib.figure",  # with its list of fonts, which no jail's home has
    "mpl_toolkits.mplot3d",
    "IPython",
    "ipykernel.kernelapp",
    "distlab.grading.marking.keeper",
    "distlab.grading.marking.kernel",
)
DESK = ("distlab.grading.desk.worker",)

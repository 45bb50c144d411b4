"""From pip to the first picture, beside JupyterLab, torch and matplotlib alone.

    python tests/bench/install.py [TURNS]

Each makes an environment, installs, and draws: we play what four ranks did, the peer
plots a line. Both install the same versions from one folder of wheels, fetched before.
They take turns; each figure is the median of three, or of TURNS.
"""

import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parents[2]
OURS = """from distlab import run, show
def meet(comm):
    comm.barrier()
if __name__ == "__main__":
    open("ours.html", "w").write(show.player(run(meet, 4)).html())
"""
PEERS = """import torch
from matplotlib import pyplot
pyplot.plot(torch.arange(4))
pyplot.savefig("peer.png")
"""


def pip(*args, python=sys.executable):
    subprocess.run([python, "-m", "pip", *map(str, args)], check=True)


def seconds_to_picture(folder, wheels, packages, code):
    """Return the seconds for the environment, the installation, and the picture."""
    python, script = folder / "env" / "bin" / "python", folder / "first.py"
    script.write_text(code)
    times = [time.monotonic()]
    subprocess.run([sys.executable, "-m", "venv", folder / "env"], check=True)
    times.append(time.monotonic())
    pip("install", "-q", "--no-index", "-f", wheels, *packages, python=python)
    times.append(time.monotonic())
    subprocess.run([python, script], cwd=folder, check=True)
    return [end - begin for begin, end in pairwise([*times, time.monotonic()])]


def main():
    count = int(sys.argv[1]) if sys.argv[1:] else 3
    with tempfile.TemporaryDirectory() as place:
        wheels = Path(place, "wheels")
        pip("wheel", "-q", "--no-deps", "-w", wheels, ROOT)
        ours = f"{next(wheels.glob('*.whl'))}[lab]"
        pip("download", "-q", "-d", wheels, "-c", ROOT / "constraints.txt", ours)
        jobs = ([ours], OURS), (["jupyterlab", "torch", "matplotlib"], PEERS)
        turns = [[], []]
        for _ in range(count):
            for job, took in zip(jobs, turns, strict=True):
                with tempfile.TemporaryDirectory(dir=place) as folder:
                    took.append(seconds_to_picture(Path(folder), wheels, *job))
    print(f"{'':28}{'venv':>8}{'pip':>8}{'picture':>9}{'all':>8}")
    names = "distlab[lab]", "jupyterlab torch matplotlib"
    for name, took in zip(names, turns, strict=True):
        venv, installed, picture = (median(each) for each in zip(*took, strict=True))
        row = f"{venv:7.1f}s{installed:7.1f}s{picture:8.1f}s"
        print(f"{name:28}{row}{median(map(sum, took)):7.1f}s")
    ratio = median(map(sum, turns[0])) / median(map(sum, turns[1]))
    print(f"ratio {ratio:.2f}, target 1.3")


if __name__ == "__main__":
    main()

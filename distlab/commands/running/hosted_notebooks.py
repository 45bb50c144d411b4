"""Notebook services: detection, addresses of notebooks, and accelerators of each."""

import os
import tomllib
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

__all__ = ["SERVICES", "Service", "here", "open_in", "ready", "repository", "site"]


@dataclass(frozen=True)
class Service:
    """A notebook service, recognized by a variable in the environment of its kernels.

    opens: the address that opens a notebook, with {slug}, such as owner/name, and
        {place}, such as lessons/10_ring.ipynb. Where notebooks are made for the
        service, they are on a branch of its name.
    accelerator: the GPUs, and the way to get them.
    home: a folder that outlives the session, if it exists. keep: the way to get one.
    """

    name: str
    variable: str
    opens: str
    accelerator: str
    keep: str
    home: str = ""

    def address(self, place: str) -> str:
        """Return the address at which the service opens a notebook of the course."""
        slug = repository().removeprefix("https://github.com/")
        return self.opens.format(slug=slug, place=place)


# Kaggle's image is made from Colab's, so Kaggle comes first.
SERVICES = {
    "kaggle": Service(
        "Kaggle",
        "KAGGLE_KERNEL_RUN_TYPE",
        "https://kaggle.com/kernels/welcome"
        "?src=https://github.com/{slug}/blob/kaggle/{place}",
        "Settings, Accelerator, GPU T4 x2",
        "Files end with the session, unless Settings, Persistence is Files only.",
        "/kaggle/working",
    ),
    "colab": Service(
        "Colab",
        "COLAB_RELEASE_TAG",
        "https://colab.research.google.com/github/{slug}/blob/colab/{place}",
        "Runtime, Change runtime type gives one. For two, take Kaggle.",
        "Files end with the session. To keep your progress, mount Google Drive before "
        'the first cell: from google.colab import drive; drive.mount("/content/drive")',
        "/content/drive/MyDrive",
    ),
    "binder": Service(
        "Binder",
        "BINDER_LAUNCH_HOST",
        "https://mybinder.org/v2/gh/{slug}/HEAD?urlpath=lab/tree/{place}",
        "For two, take Kaggle.",
        "Files end with the session. Download what you want to keep.",
    ),
}


def repository() -> str:
    """Return the project's address: of the clone that this is in, else of the wheel."""
    clone = Path(__file__).parents[3]
    if (clone / "lessons").is_dir():
        project = tomllib.loads((clone / "pyproject.toml").read_text())["project"]
        return project["urls"]["Repository"]
    urls = metadata.metadata("distlab").get_all("Project-URL")
    return dict(url.split(", ", 1) for url in urls)["Repository"]


def site() -> str:
    """Return the address at which the project's pages are published."""
    owner, name = repository().split("/")[-2:]
    return f"https://{owner}.github.io/{name}"


def open_in(place: str) -> str:
    """Return the line of links that opens a notebook in each service, in Markdown."""
    services = (SERVICES[name] for name in ("colab", "kaggle", "binder"))
    links = [f"[{s.name}]({s.address(place)})" for s in services]
    return f"Open in: {' · '.join(links)}"


def here() -> Service | None:
    """Return the service that this process runs on, None on any other machine."""
    known = (s for s in SERVICES.values() if s.variable in os.environ)
    return next(known, None)


def ready() -> None:
    """Put the learner's record into a lasting folder; print versions and GPUs."""
    import distlab
    from distlab.launch.machine import count_gpus

    service, gpus = here(), count_gpus()
    if service and os.path.isdir(service.home):
        os.environ.setdefault("DISTLAB_HOME", f"{service.home}/distlab")
    kept = os.environ.get("DISTLAB_HOME", "this session only")
    print(
        f"distlab {distlab.__version__}, torch {metadata.version('torch')}, "
        f"{gpus or 'no'} GPU{'s' * (gpus != 1)}; your progress: {kept}"
    )

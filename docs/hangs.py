"""Write "Ten public hangs" of own_scripts.md: what torchrun says, and what launch says.

python docs/hangs.py        takes eight minutes: torchrun waits as long as it is given
"""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
PAGE, BIN = HERE / "own_scripts.md", Path(sys.executable).parent
LIMIT_S = 45
BEGIN, END = "<!-- hangs -->\n", "<!-- end of hangs -->"
TORCHRUN = [BIN / "torchrun", "--standalone", "--nproc-per-node", "3"]
LAUNCH = [BIN / "distlab", "launch", "-n", "3"]


def run(command, script):
    """Return the seconds that a command took, None if stopped, and its output."""
    start = time.monotonic()
    try:
        how = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        job = subprocess.Popen([*command, script], start_new_session=True, **how)
        said, _ = job.communicate(timeout=LIMIT_S)
    except subprocess.TimeoutExpired as late:
        os.killpg(job.pid, signal.SIGTERM)  # torchrun ends its ranks
        job.communicate()
        return None, (late.stdout or b"").decode(errors="replace")
    return time.monotonic() - start, said


def of_torchrun(script):
    """Return when, and the first error that torchrun shows, in one line."""
    seconds, output = run(TORCHRUN, script)
    errors = re.findall(
        r"^(?:\[rank\d+\]: )?(\w*(?:Error|Exception): .+)$", output, re.M
    )
    said = errors[0][:150] if errors else ""
    if seconds is None:
        return f"nothing in {LIMIT_S} s; gloo's time-out is 30 minutes", said
    return f"{seconds:.0f} s", said or "no error"


def of_launch(script):
    """Return when, and the first three lines that launch shows."""
    seconds, output = run(LAUNCH, script)
    lines = [line for line in output.splitlines() if not line.startswith("[rank")]
    lines = [line for line in lines if line.strip()][:3]
    return f"{seconds:.0f} s", [line[:200] for line in lines]


def section(script, number):
    """Return the section of one script."""
    head, *code = script.read_text("utf-8").splitlines()
    title, url = re.fullmatch(r"# (.+): (https://\S+)", head).groups()
    project, _, issue = re.fullmatch(
        r"https://github.com/([\w-]+/[\w-]+)/(issues|pull)/(\d+)", url
    ).groups()
    slow, said = of_torchrun(script)
    fast, lines = of_launch(script)
    print(script.stem, "|", slow, "|", said, "|", lines[:1], flush=True)
    shown = "\n".join(f"    {line}" for line in lines)
    said = f": `{said}`" if said else ""
    return (
        f"### {number}. {title}\n\n[{project}#{issue}]({url}), "
        f"[the script](hangs/{script.name}):\n\n"
        "```python\n" + "\n".join(code) + "\n```\n\n"
        f"torchrun, {slow}{said}\n\nlaunch, {fast}:\n\n{shown}\n"
    )


def main():
    scripts = sorted((HERE / "hangs").glob("*.py"))
    made = "\n".join(section(each, n) for n, each in enumerate(scripts, 1))
    before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}\n{made}\n{end}{after}", "utf-8")


if __name__ == "__main__":
    main()

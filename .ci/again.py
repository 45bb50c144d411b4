"""A second look at tests that failed: what passes alone is flaky, and is printed.

    python .ci/again.py FIRST_LOG

Runs exactly the failed tests of the run before, one at a time, if they are at most ten.
Exits with 0 if all of them pass now.
"""

import json
import subprocess
import sys
from pathlib import Path

MOST = 10
CACHE = Path(".pytest_cache/v/distlab/failed")


def main() -> int:
    """Return the exit status."""
    lines = Path(sys.argv[1]).read_text(errors="replace").splitlines()
    closing = [line for line in lines if line.startswith("=") and " in " in line]
    failed = json.loads(CACHE.read_text()) if CACHE.exists() else {}
    if not failed or len(failed) > MOST:
        print(f"{len(failed)} tests failed: no second look (1 to {MOST} get one).")
        return 1
    command = [sys.executable, "-m", "pytest", "-n", "0", *failed]
    again = subprocess.run(command)
    still = json.loads(CACHE.read_text()) if CACHE.exists() else failed
    flaky = {test: why for test, why in failed.items() if test not in still}
    if flaky and again.returncode in (0, 1):
        print(f"\n{' flaky ':=^80}\nfailed in the first run, passed alone:")
        for test, why in flaky.items():
            print(f"\n{test}\n{why}")
    print(f"\nfirst run: {closing[-1].strip('= ') if closing else 'no closing line'}")
    return again.returncode


if __name__ == "__main__":
    sys.exit(main())

"""What Binder builds: repo2docker reads the folder binder/, and installs no more."""

import os
import re
import subprocess
import sys

import pytest
from courses import ROOT
from pins import needed, pins_of

BINDER = ROOT / "binder"
RUN_TIME = ["distlab[lab]"]  # real systems would not fit into the limit below
LIMIT_BYTES = 1_500_000_000


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="Binder has Python 3.11")
def test_binder_pins_what_lessons_need_at_run_time_and_nothing_else():
    pins = pins_of(BINDER / "requirements.txt")
    tested = pins_of(ROOT / "constraints.txt")
    tested["torch"] += "+cpu"  # never the one with CUDA
    assert pins == {name: tested[name] for name in needed(RUN_TIME)}


def test_repo2docker_installs_the_pins_then_the_clone_with_a_python_that_it_has():
    command = [sys.executable, "-m", "repo2docker", "--no-build", "--debug", ROOT]
    done = subprocess.run(command, capture_output=True, text=True)
    described = done.stdout + done.stderr
    python, install, clone, post = (
        described.find(text)
        for text in (
            "environment-2epy-2d3-2e11-2d",  # the base environment that it keeps
            '/bin/pip install --no-cache-dir -r "binder/requirements.txt"',
            "COPY --chown=0:0 src/ ${REPO_DIR}/",
            "RUN ./binder/postBuild",
        )
    )
    assert done.returncode == 0 and 0 < python < install < clone < post, described
    assert 'ENV R2D_ENTRYPOINT="${REPO_DIR}/binder/start"' in described


def test_what_binder_runs_is_executable_and_is_shell():
    for name in ("postBuild", "start"):
        assert os.access(BINDER / name, os.X_OK)
        subprocess.run(["bash", "-n", BINDER / name], check=True)


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_binders_environment_is_small_enough(tmp_path):
    pins = (BINDER / "requirements.txt").read_text()
    plain = tmp_path / "requirements.txt"
    plain.write_text(re.sub("^--.*", "", pins, flags=re.MULTILINE))  # pip's own index
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "env"], check=True)
    path = f"{tmp_path / 'env' / 'bin'}:{os.environ['PATH']}"
    install = ["pip", "install", "-q", "--no-cache-dir", "-r", plain]
    for command in (install, [BINDER / "postBuild"], ["pip", "check"]):
        env = os.environ | {"PATH": path}
        subprocess.run(command, cwd=ROOT, env=env, check=True)
    files = [f for f in (tmp_path / "env").rglob("*") if not f.is_symlink()]
    size = sum(f.stat().st_size for f in files)
    print(f"Binder's environment: {size / 1e9:.2f} GB in {len(files):,} files")
    assert size < LIMIT_BYTES

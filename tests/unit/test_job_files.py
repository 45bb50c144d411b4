"""Job files of a plan, each read by the tool that it is for; and jobs in a queue."""

import json
import os
import shutil
import subprocess
import sys
from contextlib import suppress

import pytest

from distlab.errors import InvalidArgument
from distlab.plan import (
    ClusterJob,
    GpuCluster,
    JobFiles,
    Layout,
    TrainingRun,
    place_all_or_none,
    place_one,
    plan,
    published_models,
    schedule,
)

FILES = JobFiles("llama", 4, 8, "train.py", ["--lr", "3e-4", "--note", "it's"])
SCRIPT = """import os, sys, torch, torch.distributed as dist
dist.init_process_group("gloo")
total = torch.ones(1)
dist.all_reduce(total)
with open(f"{sys.argv[1]}/{dist.get_rank()}", "w") as file:
    file.write(f"{total.item():g} of {dist.get_world_size()}")
dist.destroy_process_group()
"""


def _tool(name, *args, text):
    """Return the exit status and what a tool says of a text."""
    place = shutil.which(name, path=os.path.dirname(sys.executable))
    if place is None:
        pytest.skip(f"no {name}: pip install distlab[test]")
    how = {"input": text, "capture_output": True, "text": True}
    ran = subprocess.run([place, *args], **how)
    return ran.returncode, ran.stdout + ran.stderr


@pytest.mark.parametrize("text", [FILES.slurm(), FILES.torchrun()])
def test_shellcheck_finds_nothing_in_the_scripts(text):
    assert _tool("shellcheck", "-", text=text) == (0, "")


def test_shellcheck_would_find_an_unquoted_variable():
    status, said = _tool("shellcheck", "-", text="#!/bin/bash\nrm $1\n")
    assert status == 1 and "SC2086" in said


def _validated(text, tmp_path):
    (tmp_path / "job.yaml").write_text(text)
    return _tool("kubernetes-validate", "--strict", tmp_path / "job.yaml", text="")


def test_kubernetes_accepts_the_job_and_finds_a_misspelt_probe(tmp_path):
    status, said = _validated(FILES.kubernetes(), tmp_path)
    assert status == 0, said
    wrong = FILES.kubernetes().replace("livenessProbe", "livenessProb")
    status, said = _validated(wrong, tmp_path)
    assert status == 1 and "livenessProb" in said


def test_each_pod_has_a_name_that_the_ranks_meet_at():
    service, job = map(json.loads, FILES.kubernetes().split("---\n"))
    pod = job["spec"]["template"]["spec"]
    assert job["spec"]["completionMode"] == "Indexed"
    assert job["spec"]["completions"] == job["spec"]["parallelism"] == 4
    assert pod["subdomain"] == service["metadata"]["name"] == "llama"
    assert service["spec"]["clusterIP"] == "None"
    (container,) = pod["containers"]
    assert "--rdzv-endpoint llama-0.llama:29500" in container["command"][2]
    assert container["resources"]["limits"] == {"nvidia.com/gpu": "8"}


def test_a_pod_is_ready_while_a_rank_runs_and_not_before(tmp_path):
    script = tmp_path / "job.py"
    script.write_text("print('up', flush=True); input()")
    files = JobFiles("probe", 1, 1, str(script))
    _, job = map(json.loads, files.kubernetes().split("---\n"))
    (pod,) = job["spec"]["template"]["spec"]["containers"]
    command = pod["readinessProbe"]["exec"]["command"]
    assert subprocess.run(command).returncode == 1
    how = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    rank = subprocess.Popen([sys.executable, "-u", str(script)], **how)
    try:
        assert rank.stdout.readline() == b"up\n"
        assert subprocess.run(command).returncode == 0
    finally:
        rank.communicate(b"\n")


def test_a_plan_says_the_nodes_and_the_time_to_save():
    run = TrainingRun(batch=2048, length=8192, tokens=1e12)
    cluster = GpuCluster("H100 80GB", 1024)
    layout = Layout(tp=8, pp=8, dp=16)
    found = plan(published_models()["Llama 3 405B"].shape, cluster, layout, run)
    files = JobFiles.of(found, "big", "train.py")
    assert (files.nodes, files.per_node) == (128, 8)
    assert files.warn_s >= 2 * found.save_s - 1


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("Llama 3", 4, 8, "x.py"), "small letters, digits and dashes"),
        (("a", 0, 8, "x.py"), "nodes is a whole number"),
        (("a", 1, 8, "x.py", "--lr 3"), "args is a list of words"),
    ],
)
def test_what_no_system_would_take_is_refused(given, words):
    with pytest.raises(InvalidArgument, match=words):
        JobFiles(*given)


def test_torchrun_starts_the_ranks_of_two_hosts(tmp_path):
    (tmp_path / "sums.py").write_text(SCRIPT)
    files = JobFiles("sums", 2, 1, str(tmp_path / "sums.py"), [str(tmp_path)])
    (tmp_path / "start.sh").write_text(files.torchrun("127.0.0.1"))
    with open(tmp_path / "start.sh") as start:
        text = start.read().replace("29500", str(_free_port()))
    names = {"OMP_NUM_THREADS": "1", "PATH": os.path.dirname(sys.executable)}
    names["PATH"] += f":{os.environ['PATH']}"
    how = {"env": os.environ | names, "stdin": subprocess.PIPE, "text": True}
    hosts = [subprocess.Popen(["bash"], **how) for _ in range(2)]
    try:
        for host in hosts:
            host.stdin.write(text)
            host.stdin.close()
        assert [host.wait(120) for host in hosts] == [0, 0]
    finally:
        for host in hosts:
            with suppress(OSError):
                host.kill()
    assert {(tmp_path / f"{rank}").read_text() for rank in (0, 1)} == {"2 of 2"}


def _free_port():
    import socket

    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def test_the_file_for_ray_is_python():
    compile(FILES.ray(), "job.py", "exec")


@pytest.mark.nightly
def test_ray_places_a_gang_and_starts_its_ranks(tmp_path):
    ray = pytest.importorskip("ray")
    (tmp_path / "sums.py").write_text(SCRIPT)
    files = JobFiles("sums", 1, 2, str(tmp_path / "sums.py"), [str(tmp_path)])
    (tmp_path / "job.py").write_text(
        files.ray().replace('address="auto"', "num_cpus=2")
    )
    ran = subprocess.run([sys.executable, tmp_path / "job.py", "--cpu"], timeout=300)
    assert ran.returncode == 0 and ray
    assert (tmp_path / "1").read_text() == "2 of 2"


FOUR = dict.fromkeys("abcd", 8)
TWO = [ClusterJob("first", 3, 8, 10), ClusterJob("second", 3, 8, 10)]


def test_two_half_placed_jobs_wait_for_ever_and_gangs_do_not():
    halves = schedule(TWO, FOUR, place_one, backfill="any")
    assert halves.stuck == ["first", "second"] and halves.ends == {}
    gangs = schedule(TWO, FOUR, place_all_or_none, backfill="any")
    assert gangs.stuck == [] and gangs.ends == {"first": 10, "second": 20}
    assert gangs.goodput == 2 * 240 / (32 * 20)


def test_backfill_starves_a_large_job_unless_its_start_is_reserved():
    queue = [
        ClusterJob("small", 1, 8, 8),
        ClusterJob("large", 4, 8, 5, arrives=1),
        ClusterJob("tiny", 1, 8, 3, arrives=2),
        ClusterJob("long", 1, 8, 20, arrives=2),
    ]
    waits = {b: schedule(queue, FOUR, backfill=b).waits for b in ("none", "any")}
    assert waits["none"]["large"] == 7 and waits["none"]["tiny"] == 11
    assert waits["any"]["large"] == 21 and waits["any"]["tiny"] == 0
    reserved = schedule(queue, FOUR, backfill="reserved").waits
    assert reserved == {"small": 0, "tiny": 0, "large": 7, "long": 11}


def test_a_preemption_costs_the_work_since_the_last_checkpoint():
    how = {"interval_h": 2, "restart_h": 0.25}
    jobs = [
        ClusterJob("research", 4, 8, 24, **how),
        ClusterJob("urgent", 2, 8, 3, arrives=5, priority=1),
    ]
    waits = schedule(jobs, FOUR)
    assert waits.waits["urgent"] == 19 and waits.ends["research"] == 24
    at_once = schedule(jobs, FOUR, preempt=True)
    assert at_once.waits["urgent"] == 0 and at_once.ends["urgent"] == 8
    lost = [end - start for _, start, end, what, _ in at_once.cells if what == "lost"]
    assert lost == [1, 1, 1, 1]  # five hours of work, checkpoints at two and four
    assert at_once.ends["research"] == 8 + 0.25 + 20


def test_a_job_larger_than_the_cluster_is_refused_by_name():
    with pytest.raises(InvalidArgument, match="huge needs 5 places of 8 GPUs"):
        schedule([ClusterJob("huge", 5, 8, 1)], FOUR)

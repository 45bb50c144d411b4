"""What a busy machine takes does not count, and what nobody keeps is not made."""

import pytest

from distlab.checks.kit import on_ranks
from distlab.checks.kit.grading import check, judge
from distlab.checks.kit.ranks import until
from distlab.processes.time_limit import lost_s
from distlab.sandbox import Sandbox


@pytest.mark.parametrize(
    ("ran_and_waited", "lost"),
    [
        ([(10, 0)], 0),  # it had a processor all the time
        ([(0, 0.1), (0, 0)], 0),  # it slept
        ([(2, 8)], 8),  # four neighbours on its processor
        ([(2, 8), (0, 0)], 8),  # while another rank waits for it
        ([(1, 9), (1, 9)], 9),
        ([(5, 5)] * 4, 0),  # its own ranks are each other's neighbours
    ],
)
def test_only_what_others_take_from_processes_that_want_to_run_is_lost(
    ran_and_waited, lost, monkeypatch
):
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {0, 1})
    after = {str(pid): both for pid, both in enumerate(ran_and_waited)}
    assert lost_s({}, after, 10) == pytest.approx(lost)
    before = {pid: (100.0, 7.0) for pid in after}
    later = {pid: (100.0 + ran, 7.0 + wait) for pid, (ran, wait) in after.items()}
    assert lost_s(before, later, 10) == pytest.approx(lost)


@check("{} ranks")
def returns(function, ranks):
    on_ranks(called, function, [None] * ranks)


def called(comm, function, own):
    function(comm)


def test_a_run_that_the_end_of_its_step_cuts_short_is_inconclusive():
    def endless(comm):
        while True:
            pass

    with until(2.0):
        verdict = judge(returns, endless, (1,))
    assert verdict.outcome == "inconclusive" and "too little" in verdict.found


@pytest.fixture(scope="module")
def notebook():
    with Sandbox() as box:
        notebook = box.submission()
        yield notebook
        notebook.close()


@pytest.mark.timeout(100)
def test_a_sandboxed_cell_s_processor_time_is_known_outside(notebook):
    notebook.run("sum(range(10**7))", 1, 60)
    notebook._process.request_usage()
    while notebook._process.usage is None:
        notebook._process.poll(1.0)
    assert any(ran > 0.05 for ran, _ in notebook._process.usage.values())


@pytest.mark.timeout(100)
def test_a_picture_is_drawn_as_pixels_alone(notebook):
    source = "from distlab import show\nshow.traffic({'yours': [4, 2]}, bound_bytes=2)"
    [output] = notebook.run(source, 2, 60)
    assert output["data"].keys() == {"image/png", "text/plain"}

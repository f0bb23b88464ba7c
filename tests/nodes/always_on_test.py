# SPDX-License-Identifier: Apache-2.0
"""`run --nats` on three nodes with real torchrun, and which process collects: the node of rank 0, or `collect`."""
import contextlib
import os
import re
import shutil
import signal
import tempfile
import threading
import time

import pytest
from always_on import PORT, SERVER, TOOL, Job, eventually
from cluster import child_of, missing
from multinode import SURE, cases, problems

pytestmark = [pytest.mark.skipif(missing() is not None, reason=str(missing())), pytest.mark.skipif(SERVER is None, reason="no nats-server")]


@pytest.fixture
def folder():
    path = tempfile.mkdtemp(prefix="ddpnats_")  # short: torch puts sockets into it
    yield path
    shutil.rmtree(path, ignore_errors=True)


def case(name):
    (found,) = [one for one in cases([], False) if one["name"] == name]
    return found


def own_lines(job):
    """What the ranks and ddpdoctor wrote; two ranks may write into one line. torchrun may print an error at its end, depending on when its
    store ends."""
    return sorted(re.findall(r"READY|DONE|ddpdoctor:.*", job.said()))


@pytest.mark.parametrize("name", ["mismatch", "conditional"])
def test_the_node_of_rank_0_reports_for_all_nodes(folder, name):
    with Job(folder, f"{name}.py", words=["--hang-timeout", "4"]) as job:
        job.wait_ready()
        report = eventually(job.report, 60, job.said)
        assert not problems(case(name), False, 0, report, job.said())
        assert sorted(report["job"]["hosts"]) == ["node1", "node2", "node3"]
        assert {p["host"]: p["rank"] // 2 for p in report["processes"] if p["role"] == "rank"} == {"node1": 0, "node2": 1, "node3": 2}
        assert job.report("report-node2") is None and job.report("report-node3") is None, "one job, one report"
        assert "error:" not in job.log(1).read_text() and "error:" not in job.log(2).read_text()


def test_one_look_from_elsewhere_names_the_same(folder):
    with Job(folder, "mismatch.py", words=["--hang-timeout", "600"]) as job:
        job.wait_ready()
        eventually(job.report, 60, job.said)  # proven: no need to wait ten minutes
        status, report, printed = job.once()
        assert status == 1 and not problems(case("mismatch"), False, status, report, printed), printed
        assert "took their snapshots within" in " ".join(report["coverage"]["observed"])


def test_a_healthy_job_ends_as_without_us_and_nothing_is_said(folder):
    with Job(folder + "/bare", "short.py", under=False, server=False) as job:
        bare = job.statuses(), own_lines(job)
    with Job(folder + "/under", "short.py", words=["--hang-timeout", "4", "--always"]) as job:
        assert (job.statuses(), own_lines(job)) == bare
        report = eventually(job.report, 20, job.said)
        assert [f for f in report["findings"] if f["confidence"] in SURE] == []
        assert sorted(report["job"]["hosts"]) == ["node1", "node2", "node3"]


def ranks_heard_of(job):
    _, report, _ = job.once()
    return {process["rank"] for process in report["processes"] if process.get("rank") is not None} if report else set()


def test_a_node_that_dies_is_named_and_nobody_is_accused(folder):
    with Job(folder, "steps.py", words=["--hang-timeout", "600"]) as job:
        job.wait_ready()
        eventually(lambda: ranks_heard_of(job) == set(range(6)), 60, job.said)  # a rank may be ready before the server has heard of it
        node = job.cluster.nodes[2]
        node.unplug()
        node.end()
        eventually(lambda: "no word from node3 (ranks 4 and 5)" in job.said(), 120, job.said)
        _, report, printed = job.once()
        assert any(s.startswith("node3: no word from it") for s in report["coverage"]["unobserved"]), printed
        assert [f for f in report["findings"] if f["confidence"] in SURE and f["culprits"]] == [], printed


def test_embedded_needs_no_server(folder):
    with Job(folder, "mismatch.py", words=["--hang-timeout", "4"], url="embedded", server=False) as job:
        job.wait_ready()
        report = eventually(job.report, 60, job.said)
        assert not problems(case("mismatch"), False, 0, report, job.said())
        job.url = f"nats://{job.cluster.nodes[0].address}:{PORT + 1000}"
        status, report, printed = job.once()
        assert status == 1 and report["findings"][0]["culprits"] == [4], printed


def test_a_late_collector_and_a_restarted_server_lose_nothing(folder):
    with Job(folder, "mismatch.py", words=["--hang-timeout", "600"]) as job:
        job.wait_ready()
        eventually(job.report, 60, job.said)
        job.server.kill()
        job.server.start()
        status, report, printed = job.once()
        assert status == 1 and report["findings"][0]["culprits"] == [4], printed
        assert [j.poll() for node in job.cluster.nodes for j in node.jobs] == [None] * 3


def test_without_a_server_the_job_runs_as_alone(folder):
    with Job(folder, "short.py", url="nats://10.77.0.1:4333", server=False) as job:
        assert job.statuses() == [0, 0, 0]
        assert job.said().count("DONE") == 6
        assert job.said().count("no NATS server answers at nats://10.77.0.1:4333; the job continues") == 3, job.said()


def test_wrong_credentials_are_named_and_the_job_runs(folder):
    with Job(folder, "short.py", server_extra='authorization { token: "right" }', words=["--nats-token-file", "token"], start=False) as job:
        (job.folder / "token").write_text("wrong\n")
        for index in range(3):
            job.start(index)
        assert job.statuses() == [0, 0, 0]
        assert job.said().count("refused our credentials; the job continues") == 3, job.said()
        assert "wrong" not in job.said()


def test_a_hang_ends_the_job_on_every_node_that_asks_for_it(folder):
    with Job(folder, "mismatch.py", words=["--hang-timeout", "4", "--on-hang", "kill"]) as job:
        assert job.statuses() == [124, 124, 124], job.said()
        assert job.report()["findings"][0]["culprits"] == [4]


def test_a_node_that_was_cut_off_for_a_while_is_heard_again(folder):
    with Job(folder, "steps.py", words=["--hang-timeout", "600"]) as job:
        job.wait_ready()
        node = job.cluster.nodes[2]
        node.unplug()
        eventually(lambda: "no word from node3 (ranks 4 and 5)" in job.said(), 120, job.said)
        node.plug()

        def all_answer():
            _, report, _ = job.once()
            return report and report["coverage"]["observed"][0].startswith("3 of 3 nodes answered") and report

        report = eventually(all_answer, 90, job.said)
        assert [f for f in report["findings"] if f["confidence"] in SURE] == []


@contextlib.contextmanager
def slowed(job, index):
    """`ddpdoctor run` of this node gets a tenth of the time, in pieces."""
    outside = job.cluster.nodes[index].jobs[0].pid  # nsenter, which stops with its child
    process, over = child_of(outside), threading.Event()

    def slow():
        while not over.wait(0.08):
            os.kill(process, signal.SIGSTOP)
            over.wait(0.72)
            for one in (outside, process):
                os.kill(one, signal.SIGCONT)

    thread = threading.Thread(target=slow)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def test_a_slow_node_is_waited_for_and_its_rank_is_named(folder):
    with Job(folder, "mismatch.py", words=["--hang-timeout", "4"]) as job, slowed(job, 2):
        job.wait_ready()
        report = eventually(job.report, 120, job.said)
        assert not problems(case("mismatch"), False, 0, report, job.said())
        assert sorted(report["job"]["hosts"]) == ["node1", "node2", "node3"]


def test_a_slow_node_of_a_healthy_job_is_not_accused(folder):
    with Job(folder, "steps.py", words=["--hang-timeout", "4"]) as job, slowed(job, 2):
        job.wait_ready()
        time.sleep(8)
        _, report, printed = job.once()
        assert [f for f in report["findings"] if f["confidence"] in SURE] == [], printed
        assert job.report() is None and "error:" not in job.said(), job.said()


def test_a_collector_that_people_start_takes_over(folder):
    with Job(folder, "steps.py", words=["--hang-timeout", "600"]) as job:
        job.wait_ready()
        collector = job.collector("--report-dir", "mine")
        late = threading.Timer(120, collector.kill)
        late.start()
        time.sleep(5)  # the collector hears each node once a second
        job.cluster.nodes[2].unplug()
        job.cluster.nodes[2].end()
        said = collector.stdout.readline()
        while "no word from node3" not in said:
            assert said, "the collector ended"
            said = collector.stdout.readline()
        late.cancel()
    collector.wait(timeout=60)  # its node has ended


def test_the_tool_is_there():
    assert TOOL

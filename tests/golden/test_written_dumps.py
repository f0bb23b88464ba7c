# SPDX-License-Identifier: Apache-2.0
"""`report x.ddpd -o x.fr` of a real job under `ddpdoctor run`: torchfrtrace accepts the folder and names the call at which ranks diverge,
and so does our own reader. Skipped without $DDPDOCTOR, and if Python has no torch with its flight-recorder tool."""
import importlib.util
import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = os.environ.get("DDPDOCTOR", "")
ANALYSER = "torch.distributed.flight_recorder.fr_trace"

pytestmark = pytest.mark.skipif(not TOOL, reason="DDPDOCTOR names no ddpdoctor to ask")

PROGRAM = """import torch, torch.distributed as dist
dist.init_process_group("gloo")
rank, ranks = dist.get_rank(), dist.get_world_size()
pair = dist.new_group([0, 1])
data = torch.ones(12)
dist.all_gather([torch.zeros(12) for _ in range(ranks)], data)
dist.reduce_scatter_tensor(torch.zeros(4), data)
dist.gather(data, [torch.zeros(12) for _ in range(ranks)] if rank == 0 else None, dst=0)
dist.scatter(torch.zeros(12), [torch.zeros(12) for _ in range(ranks)] if rank == 0 else None, src=0)
dist.all_to_all_single(torch.zeros(6), torch.zeros(6))
dist.all_gather_object([None] * ranks, {"rank": "x" * rank})
dist.monitored_barrier()
if rank < 2:
    dist.all_reduce(data, group=pair)
    (dist.send if rank == 0 else dist.recv)(data, 1 - rank)
if rank == 2:
    dist.broadcast(data, 0)  # PARTS
else:
    dist.all_reduce(data)
"""


MESSAGES = """import torch, torch.distributed as dist
dist.init_process_group("gloo")
rank, ranks = dist.get_rank(), dist.get_world_size()
data, theirs = torch.ones(4, 3), torch.zeros(4, 3)
dist.all_reduce(data)
right, left = (rank + 1) % ranks, (rank - 1) % ranks
for work in [dist.isend(data, right), dist.isend(data, left, tag=5), dist.irecv(theirs, left), dist.irecv(theirs, right, tag=5)]:
    work.wait()
for work in dist.batch_isend_irecv([dist.P2POp(dist.irecv, theirs, left), dist.P2POp(dist.isend, data, right)]):
    work.wait()
dist.barrier()
if rank == 1:
    dist.recv(theirs, 2)  # NEVER SENT
if rank != 2:
    dist.all_reduce(data)
else:
    dist.recv(theirs, 1)
"""


def has_analyser():
    try:
        return importlib.util.find_spec(ANALYSER) is not None
    except ImportError:
        return False


def report(*words, folder):
    done = subprocess.run([TOOL, "report", *words, "-o", "x.json"], cwd=folder, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
    assert done.returncode == 1, done.stderr
    return json.loads((folder / "x.json").read_text())["findings"][0], done.stderr


def hung_job(folder, program):
    """job.ddpd of a job of three ranks that hangs."""
    if not has_analyser():
        pytest.skip(f"{sys.executable} has no {ANALYSER}")
    (folder / "train.py").write_text(program)
    done = subprocess.run([TOOL, "run", "--on-hang", "kill", "--always", "--report-dir", ".", "--", sys.executable, "-m", "torch.distributed.run",
                           "--nproc_per_node=3", "train.py"], cwd=folder, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL,
                          env={**os.environ, "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"})
    assert done.returncode == 124, done.stderr[-2000:]
    return folder


@pytest.fixture(scope="module")
def dumps(tmp_path_factory):
    """A job whose rank 2 calls another operation."""
    return hung_job(tmp_path_factory.mktemp("job"), PROGRAM)


@pytest.fixture(scope="module")
def messages(tmp_path_factory):
    """A job whose ranks 1 and 2 receive from each other, after messages that succeeded."""
    return hung_job(tmp_path_factory.mktemp("messages"), MESSAGES)


def analysed(folder, dumps):
    done = subprocess.run([sys.executable, "-m", ANALYSER, dumps], cwd=folder, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_torchfrtrace_names_the_call_and_no_other(dumps):
    _, told = report("job.ddpd", "-o", "job.fr", folder=dumps)
    assert "left out" not in told
    assert sorted(path.name for path in (dumps / "job.fr").iterdir()) == ["rank_0", "rank_1", "rank_2"]
    said = analysed(dumps, "job.fr")
    assert said.count("has errors") == 1 and "COLLECTIVE_TYPE_MISMATCH" in said and "Not all ranks" not in said, said
    place = 1 + PROGRAM[:PROGRAM.index("# PARTS")].count("\n")
    assert f"train.py:{place}" in said


def test_torchfrtrace_pairs_messages_and_names_those_without_a_partner(messages):
    _, told = report("job.ddpd", "-o", "job.fr", folder=messages)
    assert "left out" not in told
    said = analysed(messages, "job.fr")
    lines = MESSAGES[:MESSAGES.index("# NEVER SENT")].count("\n") + 1
    complaints = said.split("Not all ranks joining collective")[1:]
    assert "has errors" not in said.split("gloo:recv")[0], said  # what went well is paired
    assert any(f"train.py:{lines}" in one and "gloo:recv 0<-1" in one for one in complaints), said
    dump = pickle.loads((messages / "job.fr" / "rank_1").read_bytes())
    entry = next(entry for entry in dump["entries"] if entry["is_p2p"])
    assert entry["p2p_seq_id"] == entry["collective_seq_id"] and entry["input_sizes"] == entry["output_sizes"]
    assert dump["pg_config"][entry["process_group"][0]]["pair_of"] == "0"


def test_our_own_reader_finds_the_same_in_messages(messages):
    live, _ = report("job.ddpd", "-o", "again.fr", folder=messages)
    read, _ = report("again.fr", folder=messages)
    assert read["kind"] == live["kind"] == "p2p-deadlock"
    assert read["culprits"] == live["culprits"] == [1, 2]
    assert read["locations"] == live["locations"]


def test_our_own_reader_finds_the_same(dumps):
    live, _ = report("job.ddpd", "-o", "again.fr", folder=dumps)
    read, _ = report("again.fr", folder=dumps)
    assert read["kind"] == live["kind"] == "mismatched-op"
    assert read["culprits"] == live["culprits"] == [2]
    assert read["locations"][0] == live["locations"][0]


def test_plain_python_reads_it(dumps):
    report("job.ddpd", "-o", "plain.fr", folder=dumps)
    dump = pickle.loads((dumps / "plain.fr" / "rank_2").read_bytes())
    assert dump["version"] == "2.10" and set(dump["pg_config"]) == {"0"}  # of pairs only those of which it is a member
    assert [entry["collective_seq_id"] for entry in dump["entries"]] == list(range(1, len(dump["entries"]) + 1))
    assert dump["entries"][-1]["profiling_name"] == "gloo:broadcast" and dump["entries"][-1]["input_sizes"] == [[12]]


def test_a_recording_cut_anywhere_is_refused_or_says_what_is_missing(dumps):
    report("job.ddpd", "-o", "whole.ddpd", folder=dumps)
    whole = (dumps / "whole.ddpd").read_bytes()
    used = 0
    for size in sorted({*range(1, 40), *range(40, len(whole), len(whole) // 40), *range(len(whole) - 20, len(whole))}):
        (dumps / "cut.ddpd").write_bytes(whole[:size])
        done = subprocess.run([TOOL, "report", "cut.ddpd"], cwd=dumps, capture_output=True, text=True, timeout=20, stdin=subprocess.DEVNULL)
        assert done.returncode in (0, 1, 3), f"{size}: {done.returncode} {done.stderr}"
        said = done.stderr if done.returncode == 3 else done.stdout
        if size > 8:  # shorter ones are no known message
            assert "is cut short" in " ".join(said.split()), f"{size}: {said}"
        used += done.returncode != 3
    assert used > 0


def test_without_calls_it_is_refused_and_nothing_is_written(tmp_path):
    (tmp_path / "x.json").write_text(json.dumps({"schema": "ddpdoctor.capture/1", "job": {"world_size": 1}}))
    done = subprocess.run([TOOL, "report", "x.json", "-o", "x.fr"], cwd=tmp_path, capture_output=True, text=True, timeout=20, stdin=subprocess.DEVNULL)
    assert done.returncode == 3 and "no collective call was recorded" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["x.json"]

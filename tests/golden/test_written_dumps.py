# SPDX-License-Identifier: Apache-2.0
"""`report x.ddpd -o x.fr` of a real job under `ddpdoctor run`: torchfrtrace accepts the folder and names the call where ranks part, and so does
our own reader. Skipped without $DDPDOCTOR, and where Python has no torch with its flight-recorder tool."""
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


def has_analyser():
    try:
        return importlib.util.find_spec(ANALYSER) is not None
    except ImportError:
        return False


def report(*words, folder):
    done = subprocess.run([TOOL, "report", *words, "-o", "x.json"], cwd=folder, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
    assert done.returncode == 1, done.stderr
    return json.loads((folder / "x.json").read_text())["findings"][0], done.stderr


@pytest.fixture(scope="module")
def dumps(tmp_path_factory):
    """A folder with job.ddpd and job.fr/ of a job whose rank 2 calls another operation."""
    if not has_analyser():
        pytest.skip(f"{sys.executable} has no {ANALYSER}")
    folder = tmp_path_factory.mktemp("job")
    (folder / "train.py").write_text(PROGRAM)
    done = subprocess.run([TOOL, "run", "--on-hang", "kill", "--always", "--report-dir", ".", "--", sys.executable, "-m", "torch.distributed.run",
                           "--nproc_per_node=3", "train.py"], cwd=folder, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL,
                          env={**os.environ, "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"})
    assert done.returncode == 124, done.stderr[-2000:]
    return folder


def test_torchfrtrace_names_the_call_and_no_other(dumps):
    _, told = report("job.ddpd", "-o", "job.fr", folder=dumps)
    assert "2 sends and receives are left out" in told
    assert sorted(path.name for path in (dumps / "job.fr").iterdir()) == ["rank_0", "rank_1", "rank_2"]
    done = subprocess.run([sys.executable, "-m", ANALYSER, "job.fr"], cwd=dumps, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert said.count("has errors") == 1 and "COLLECTIVE_TYPE_MISMATCH" in said and "Not all ranks" not in said, said
    place = 1 + PROGRAM[:PROGRAM.index("# PARTS")].count("\n")
    assert f"train.py:{place}" in said


def test_our_own_reader_finds_the_same(dumps):
    live, _ = report("job.ddpd", "-o", "again.fr", folder=dumps)
    read, _ = report("again.fr", folder=dumps)
    assert read["kind"] == live["kind"] == "mismatched-op"
    assert read["culprits"] == live["culprits"] == [2]
    assert read["locations"][0] == live["locations"][0]


def test_plain_python_reads_it(dumps):
    report("job.ddpd", "-o", "plain.fr", folder=dumps)
    dump = pickle.loads((dumps / "plain.fr" / "rank_2").read_bytes())
    assert dump["version"] == "2.10" and set(dump["pg_config"]) == {"0"}
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
        if size > 8:  # shorter ones are nothing that is known
            assert "is cut short" in " ".join(said.split()), f"{size}: {said}"
        used += done.returncode != 3
    assert used > 0


def test_without_calls_it_is_refused_and_nothing_is_written(tmp_path):
    (tmp_path / "x.json").write_text(json.dumps({"schema": "ddpdoctor.capture/1", "job": {"world_size": 1}}))
    done = subprocess.run([TOOL, "report", "x.json", "-o", "x.fr"], cwd=tmp_path, capture_output=True, text=True, timeout=20, stdin=subprocess.DEVNULL)
    assert done.returncode == 3 and "no collective call was recorded" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["x.json"]

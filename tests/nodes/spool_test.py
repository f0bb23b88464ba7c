# SPDX-License-Identifier: Apache-2.0
"""`ddpdoctor run --spool` on a folder that two nodes share, with processes of the same pids, and `ddpdoctor report` of it."""
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cluster import Cluster, missing
from multinode import PORT

HERE = Path(__file__).resolve().parent
TOOL = os.environ.get("DDPDOCTOR", "ddpdoctor")
pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))


@pytest.fixture(scope="module")
def spool(tmp_path_factory):
    """The spool of mismatch.py on three nodes whose power failed while it hung."""
    folder = tmp_path_factory.mktemp("shared")
    shutil.copy(HERE / "jobs/mismatch.py", folder / "train.py")
    environment = {**{k: v for k, v in os.environ.items() if k in ("PATH", "HOME", "LANG")}, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "eth0",
                   "PYTHONUNBUFFERED": "1"}
    with Cluster(folder) as cluster:
        (folder / "spool").mkdir(mode=0o700)
        for index, node in enumerate(cluster.nodes):
            node.start(f"exec {TOOL} run --report-dir {folder}/report-{node.name} --spool {folder}/spool -- "
                       f"{sys.executable} -m torch.distributed.run --nnodes 3 --node-rank {index} --nproc-per-node 2 "
                       f"--master-addr {cluster.nodes[0].address} --master-port {PORT} train.py", environment, folder / "job.log")
        until = time.time() + 120
        while (folder / "job.log").read_text(errors="replace").count("READY") < 6:
            assert time.time() < until, (folder / "job.log").read_text(errors="replace")[-2000:]
            time.sleep(0.3)
        time.sleep(4)
    return folder / "spool"


def report(*words):
    target = Path(words[0]).parent / "out.json"
    target.unlink(missing_ok=True)
    done = subprocess.run([TOOL, "report", *map(str, words), "-o", str(target)], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
    assert target.exists(), done.stderr
    return json.loads(target.read_text()), done.stdout + done.stderr


def test_each_host_records_for_itself(spool):
    assert len([path for path in spool.iterdir() if path.is_dir()]) == 2
    assert {path.name.split("-")[0] for path in spool.glob("*.ring")} & {path.name.split("-")[0] for path in spool.glob("*/*.ring")}, \
        "no pid is on two hosts: the test shows less than it should"


def test_the_folder_is_one_job_whose_culprit_has_a_host(spool):
    said, text = report(spool)
    first = said["findings"][0]
    assert (first["kind"], first["culprits"]) == ("mismatched-op", [4]), text
    assert first["details"]["hosts"] == ["node3"] and "rank 4 (node3)" in first["summary"], text
    assert sorted(said["job"]["hosts"]) == ["node1", "node2", "node3"]
    ranks = {process["rank"]: process["host"] for process in said["processes"] if process["role"] == "rank"}
    assert ranks == {0: "node1", 1: "node1", 2: "node2", 3: "node2", 4: "node3", 5: "node3"}

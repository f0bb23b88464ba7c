# SPDX-License-Identifier: Apache-2.0
"""`attach --slurm JOBID` with a real Slurm: torchrun below srun on three nodes, asked from the login node."""
import json
import os
import shutil
import sys
import time
from pathlib import Path

import pytest
from always_on import SERVER, eventually
from slurm import Slurm, missing

HERE = Path(__file__).resolve().parent
TOOL = os.environ.get("DDPDOCTOR", "ddpdoctor")
pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))


@pytest.fixture
def slurm(tmp_path):
    """A new cluster for each test: a node whose job was cancelled under load may stay drained."""
    here = Slurm(tmp_path)
    yield here
    here.end()


def start(slurm, *words):
    """torchrun on each of three nodes of a job, as in docs/multinode.md."""
    shutil.copy(HERE / "jobs/mismatch.py", slurm.folder / "train.py")
    log = slurm.folder / "job.log"
    log.unlink(missing_ok=True)
    job = slurm.submit(f"cd {slurm.folder}\n"
                       "head=$(scontrol show hostnames \"$SLURM_JOB_NODELIST\" | head -n1)\n"
                       f"srun bash -c \"{sys.executable} -m torch.distributed.run --nnodes $SLURM_JOB_NUM_NODES --node-rank \\$SLURM_NODEID "
                       f"--nproc-per-node 2 --master-addr $head --master-port 29500 train.py {' '.join(words)}\"\n")
    until = time.time() + 120
    while (log.read_text() if log.exists() else "").count("READY") < 6:
        assert time.time() < until, log.read_text() if log.exists() else slurm.run("squeue").stdout
        time.sleep(0.3)
    time.sleep(3)
    return job


def attach(slurm, job):
    target = slurm.folder / "report.json"
    target.unlink(missing_ok=True)
    began = time.time()
    done = slurm.run(TOOL, "attach", "--slurm", job, "-o", str(target))
    assert target.exists(), done.stderr
    report = json.loads(target.read_text())
    report["seconds"] = time.time() - began
    return report, done


def test_a_fault_is_named_with_its_node(slurm):
    report, done = attach(slurm, start(slurm))
    assert done.returncode == 1, done.stderr
    (first, *_) = report["findings"]
    assert (first["kind"], first["culprits"], first["details"]["hosts"]) == ("mismatched-op", [4], ["node3"]), done.stdout
    assert first["confidence"] in ("likely", "certain"), done.stdout + json.dumps(report["coverage"], indent=1)
    assert "3 of 3 nodes answered" in report["coverage"]["observed"][0]
    assert report["coverage"]["unobserved"] == []


def test_a_healthy_job_goes_on_and_nothing_is_said(slurm):
    job = start(slurm, "--healthy")
    report, done = attach(slurm, job)
    assert job in slurm.run("squeue", "-h", "-o", "%i").stdout
    assert done.returncode == 0, done.stdout
    assert report["verdict"] == "running" and not report["findings"]


def test_a_job_that_waits_and_one_that_is_not_there(slurm):
    done = slurm.run(TOOL, "attach", "--slurm", "999999")
    assert done.returncode == 3 and "999999" in done.stderr


def test_a_job_recorded_from_its_start_is_one_job(slurm):
    """The sbatch lines of docs/multinode.md: one `run` for each node, and a shared folder, read while the job hangs."""
    shutil.copy(HERE / "jobs/mismatch.py", slurm.folder / "train.py")
    log, spool = slurm.folder / "job.log", slurm.folder / "spooled"
    slurm.submit(f"cd {slurm.folder}\n"
                 "head=$(scontrol show hostnames \"$SLURM_JOB_NODELIST\" | head -n1)\n"
                 f"srun bash -c \"exec {TOOL} run --spool {spool} --report-dir report-\\$SLURM_NODEID -- "
                 f"{sys.executable} -m torch.distributed.run --nnodes $SLURM_JOB_NUM_NODES --node-rank \\$SLURM_NODEID "
                 "--nproc-per-node 2 --master-addr $head --master-port 29500 train.py\"\n")
    until = time.time() + 120
    while (log.read_text() if log.exists() else "").count("READY") < 6:
        assert time.time() < until, log.read_text() if log.exists() else slurm.run("squeue").stdout
        time.sleep(0.3)
    time.sleep(5)
    done = slurm.run(TOOL, "report", str(spool), "-o", str(slurm.folder / "report.json"))
    assert done.returncode == 1, done.stdout + done.stderr + log.read_text()
    (first, *_) = json.loads((slurm.folder / "report.json").read_text())["findings"]
    assert (first["kind"], first["culprits"]) == ("mismatched-op", [4]), done.stdout + log.read_text()


@pytest.mark.skipif(SERVER is None, reason="no nats-server")
def test_a_job_reports_by_itself_over_nats(slurm):
    """`run --nats embedded` below srun: the node of rank 0 starts the server and reports; the login node asks by the job's number."""
    shutil.copy(HERE / "jobs/mismatch.py", slurm.folder / "train.py")
    log, written = slurm.folder / "job.log", slurm.folder / "report-0/report.json"
    job = slurm.submit(f"cd {slurm.folder}\n"
                       "head=$(scontrol show hostnames \"$SLURM_JOB_NODELIST\" | head -n1)\n"
                       f"srun bash -c \"exec {TOOL} run --nats embedded --hang-timeout 4 --report-dir report-\\$SLURM_NODEID -- "
                       f"{sys.executable} -m torch.distributed.run --nnodes $SLURM_JOB_NUM_NODES --node-rank \\$SLURM_NODEID "
                       "--nproc-per-node 2 --master-addr $head --master-port 29500 train.py\"\n")
    eventually(written.exists, 120, lambda: log.read_text() if log.exists() else slurm.run("squeue").stdout)
    (first, *_) = json.loads(written.read_text())["findings"]
    assert (first["kind"], first["culprits"], first["details"]["hosts"]) == ("mismatched-op", [4], ["node3"]), log.read_text()
    done = slurm.run(TOOL, "collect", "--nats", "nats://node1:30500", "--job", f"slurm-{job}", "--once", "-o", str(slurm.folder / "once.json"))
    assert done.returncode == 1, done.stdout + done.stderr
    report = json.loads((slurm.folder / "once.json").read_text())
    assert report["findings"][0]["culprits"] == [4] and sorted(report["job"]["hosts"]) == ["node1", "node2", "node3"]

# SPDX-License-Identifier: Apache-2.0
"""A job of MPI on three nodes that mpirun starts over ssh, and `attach --hosts` over ssh: a real sshd on each node."""
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

import cluster

TOOL = os.environ.get("DDPDOCTOR", "")
SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
pytestmark = [pytest.mark.skipif(not Path(TOOL).is_file(), reason="$DDPDOCTOR is not the program"),
              pytest.mark.skipif(not SSHD or not shutil.which("ssh") or not shutil.which("mpirun"), reason="no sshd, no ssh or no mpirun here")]

JOB = """import time
from mpi4py import MPI

world = MPI.COMM_WORLD


def save(step):
    if step == 3 and world.rank == 2:  # CULPRIT
        return
    world.Barrier()


for step in range(5):
    world.allreduce(step)
    save(step)
    print("STEP", step, flush=True)
time.sleep(600)
"""
SERVER = """HostKey {folder}/host
AuthorizedKeysFile {folder}/user.pub
StrictModes no
UsePAM no
PasswordAuthentication no
PidFile none
"""
CLIENT = """Host *
  IdentityFile {folder}/user
  StrictHostKeyChecking no
  UserKnownHostsFile /dev/null
  LogLevel ERROR
"""


@pytest.fixture
def nodes(tmp_path):
    if reason := cluster.missing():
        pytest.skip(reason)
    pytest.importorskip("mpi4py")
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / name)], check=True)
    (tmp_path / "sshd.conf").write_text(SERVER.format(folder=tmp_path))
    (tmp_path / "ssh.conf").write_text(CLIENT.format(folder=tmp_path))
    (tmp_path / "ssh").write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -F {tmp_path}/ssh.conf "$@"\n')
    (tmp_path / "ssh").chmod(0o755)
    with cluster.Cluster(tmp_path / "cluster") as made:
        for node in made.nodes:
            node.start(f"mkdir -p /run/sshd; exec {SSHD} -D -e -f {tmp_path}/sshd.conf", {**os.environ}, tmp_path / f"{node.name}.sshd")
        yield made


def test_an_mpi_job_over_ssh_is_read_over_ssh(nodes, tmp_path):
    (tmp_path / "train.py").write_text(JOB)
    (tmp_path / "hosts").write_text("".join(f"{node.name} slots=1\n" for node in nodes.nodes))
    path = f"{tmp_path}:{os.environ['PATH']}"
    first = nodes.nodes[0]
    command = f"exec mpirun --allow-run-as-root --mca plm_rsh_agent {tmp_path}/ssh --mca btl_tcp_if_include eth0 --mca oob_tcp_if_include eth0 " \
              f"--hostfile {tmp_path}/hosts -n 3 {sys.executable} {tmp_path}/train.py"
    first.start(command, {**os.environ, "PATH": path}, tmp_path / "log")
    end = time.monotonic() + 60
    while "STEP 2" not in (tmp_path / "log").read_text():
        assert time.monotonic() < end, (tmp_path / "log").read_text() + "".join(file.read_text() for file in tmp_path.glob("*.sshd"))
        time.sleep(0.2)
    time.sleep(2)
    report = tmp_path / "report.json"
    hosts = subprocess.run(["sh", "-c", f"cut -d' ' -f1 {tmp_path}/hosts | paste -sd,"], capture_output=True, text=True, check=True).stdout.strip()
    done = subprocess.run(first.enter("env", f"PATH={path}", TOOL, "attach", "--hosts", hosts, "-o", str(report)), capture_output=True, text=True, timeout=90)
    assert report.exists(), f"{done.stdout} {done.stderr}"
    finding = json.loads(report.read_text())["findings"][0]
    assert finding["culprits"] == [2] and finding["waiting"] == [0, 1], f"{finding} {done.stdout}"
    assert finding["locations"][0]["file"].endswith("train.py"), finding

# SPDX-License-Identifier: Apache-2.0
"""A real Slurm on the nodes of cluster.py: a slurmd on each, the controller on the first, and the last node for logins. Everything is in
the nodes' namespaces and in one folder, and ends with them. Needs slurmctld, slurmd, srun and munged (Debian: slurm-wlm, munge) and root."""
import os
import shutil
import subprocess
import time
from pathlib import Path

from cluster import Cluster
from cluster import missing as no_cluster

PROGRAMS = ("slurmctld", "slurmd", "srun", "squeue", "scontrol", "munged")
CONFIGURATION = """ClusterName=test
SlurmctldHost=node1(10.77.0.1)
SlurmUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool.%n
SlurmctldPidFile={folder}/ctld.pid
SlurmdPidFile={folder}/d.%n.pid
SlurmctldLogFile={folder}/ctld.log
SlurmdLogFile={folder}/d.%n.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
ReturnToService=2
PlugStackConfig={folder}/plugstack.conf
{nodes}
PartitionName=p Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=YES
"""


def missing():
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    for program in PROGRAMS:
        if shutil.which(program, path=path) is None:
            return f"no {program}"
    return "only root can start slurmd" if os.geteuid() != 0 else no_cluster()


class Slurm:
    """Three nodes with Slurm, and `login`, from which jobs are started and observed."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.cluster = Cluster(self.folder, 4)
        self.login = self.cluster.nodes[-1]
        self.munged = None
        try:
            self.start()
        except BaseException:
            self.end()
            raise

    def start(self):
        for name in ("state", "spool.node1", "spool.node2", "spool.node3"):
            (self.folder / name).mkdir()
        (self.folder / "plugstack.conf").touch()
        self.folder.chmod(0o755)
        nodes = "\n".join(f"NodeName={n.name} NodeAddr={n.address} CPUs={os.cpu_count()} RealMemory=1000" for n in self.cluster.nodes[:3])
        (self.folder / "slurm.conf").write_text(CONFIGURATION.format(folder=self.folder, nodes=nodes))
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        self.munged = subprocess.Popen(["/usr/sbin/munged", "--foreground", "--force", f"--key-file={key}", f"--socket={self.folder}/munge.socket",
                                        f"--pid-file={self.folder}/munged.pid", f"--log-file={self.folder}/munged.log",
                                        f"--seed-file={self.folder}/munged.seed"],
                                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until = time.time() + 20
        while not (self.folder / "munge.socket").exists() and time.time() < until:
            time.sleep(0.05)
        log = self.folder / "daemons.log"
        self.cluster.nodes[0].start("exec /usr/sbin/slurmctld -D", self.environment, log)
        for node in self.cluster.nodes[:3]:
            node.start(f"exec /usr/sbin/slurmd -D -N {node.name}", self.environment, log)
        while time.time() < until:
            states = self.run("sinfo", "-h", "-o", "%T %D").stdout.split()
            if states == ["idle", "3"]:
                return
            time.sleep(0.3)
        raise RuntimeError(f"Slurm did not come up: {states} {log.read_text()[-1000:]}")

    @property
    def environment(self):
        kept = {k: v for k, v in os.environ.items() if k in ("PATH", "HOME", "LANG")}
        return {**kept, "PATH": kept["PATH"] + ":/usr/sbin:/sbin", "SLURM_CONF": str(self.folder / "slurm.conf"), "OMP_NUM_THREADS": "1",
                "GLOO_SOCKET_IFNAME": "eth0", "PYTHONUNBUFFERED": "1", "NODE_FOLDER": str(self.folder)}

    def run(self, *words, timeout=120):
        """A command on the login node."""
        return subprocess.run(self.login.enter(*words), env=self.environment, capture_output=True, text=True, timeout=timeout, stdin=subprocess.DEVNULL)

    def submit(self, text):
        """The id of the job that this script makes."""
        script = self.folder / "job.sh"
        script.write_text("#!/bin/bash\n" + text)
        done = self.run("sbatch", "--parsable", "--nodes=3", "--ntasks-per-node=1", f"--output={self.folder}/job.log", str(script))
        if done.returncode != 0:
            raise RuntimeError(done.stderr)
        return done.stdout.strip()

    def end(self):
        self.cluster.end()
        if self.munged:
            self.munged.terminate()
            self.munged.wait()

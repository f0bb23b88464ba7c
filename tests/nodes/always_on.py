# SPDX-License-Identifier: Apache-2.0
"""Real torchrun on three nodes of cluster.py, each under `ddpdoctor run --nats`, and a real nats-server on the first node."""
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from cluster import Cluster

HERE = Path(__file__).resolve().parent
TOOL = os.environ.get("DDPDOCTOR", "ddpdoctor")
PORT = 29511  # in namespaces of their own, so the port is free
NATS_PORT = 4222
SERVER = next((path for path in (shutil.which("nats-server"), "/usr/sbin/nats-server") if path and os.access(path, os.X_OK)), None)


def eventually(holds, seconds, what):
    """Waits for a condition; returns its value."""
    until = time.time() + seconds
    while not (value := holds()):
        assert time.time() < until, f"not within {seconds} s: {what() if callable(what) else what}"
        time.sleep(0.05)
    return value


class Server:
    """A nats-server in a node (or on this machine), which can be killed and restarted on the same folder."""

    def __init__(self, folder, enter=lambda *words: list(words), port=NATS_PORT, extra="", keeps=True):
        self.folder, self.enter, self.process = Path(folder), enter, None
        self.folder.mkdir(parents=True, exist_ok=True)
        self.configuration = self.folder / "server.conf"
        self.configuration.write_text("\n".join([f"port: {port}", f'jetstream {{ store_dir: "{self.folder}/store" }}' if keeps else "", extra, ""]))
        self.start()

    def start(self):
        log = self.folder / "server.log"
        before = log.read_text().count("Server is ready") if log.exists() else 0
        with open(log, "ab") as out:
            self.process = subprocess.Popen(self.enter(SERVER, "--config", str(self.configuration)), stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        eventually(lambda: log.read_text().count("Server is ready") > before, 20, log.read_text)

    def kill(self):
        """The server itself, not the nsenter around it: with nsenter -p the program is its child."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        for pid in [int(word) for word in children.read_text().split()] or [self.process.pid]:
            os.kill(pid, signal.SIGKILL)
        self.process.wait()


class Job:
    """`script` on three nodes; node1's address is the rendezvous. Outputs: {node}.log; reports: report-{node}."""

    def __init__(self, folder, script, healthy=False, words=(), url=None, server=True, server_extra="", under=True, start=True):
        self.folder, self.cluster, self.server = Path(folder), None, None
        self.folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(HERE / "jobs" / script, self.folder / "train.py")
        self.cluster = Cluster(self.folder)
        try:
            first = self.cluster.nodes[0]
            self.url = url or f"nats://{first.address}:{NATS_PORT}"
            if server:
                self.server = Server(self.folder / "nats", first.enter, extra=server_extra)
            self.healthy, self.words, self.under = healthy, words, under
            for index in range(3) if start else ():
                self.start(index)
        except BaseException:
            self.end()
            raise

    def environment(self):
        kept = {k: v for k, v in os.environ.items() if k in ("PATH", "HOME", "LANG")}
        return {**kept, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "eth0", "PYTHONUNBUFFERED": "1", "NODE_FOLDER": str(self.folder)}

    def start(self, index):
        node = self.cluster.nodes[index]
        run = f"{TOOL} run --nats {self.url} --report-dir report-{node.name} {' '.join(self.words)} -- " if self.under else ""
        node.start(f"exec {run}{sys.executable} -m torch.distributed.run --nnodes 3 --node-rank {index} --nproc-per-node 2 "
                   f"--master-addr {self.cluster.nodes[0].address} --master-port {PORT} train.py{' --healthy' if self.healthy else ''}",
                   self.environment(), self.log(index))

    def log(self, index):
        return self.folder / f"node{index + 1}.log"

    def said(self):
        return "\n".join(self.log(i).read_text(errors="replace") for i in range(3) if self.log(i).exists())

    def wait_ready(self, ranks=6):
        eventually(lambda: self.said().count("READY") >= ranks, 120, self.said)

    def report(self, name="report-node1"):
        """The report, once it is complete."""
        path = self.folder / name / "report.json"
        return json.loads(path.read_text()) if path.exists() else None

    def collector(self, *words, **more):
        """Runs `ddpdoctor collect` in the first node."""
        return subprocess.Popen(self.cluster.nodes[0].enter(TOOL, "collect", "--nats", self.url, *words), stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=self.folder, **more)

    def once(self, *words):
        target = self.folder / "once.json"
        target.unlink(missing_ok=True)
        collector = self.collector("--once", "-o", str(target), *words)
        printed, _ = collector.communicate(timeout=120)
        return collector.returncode, json.loads(target.read_text()) if target.exists() else None, printed

    def statuses(self, seconds=120):
        eventually(lambda: all(job.poll() is not None for node in self.cluster.nodes for job in node.jobs), seconds, self.said)
        return [job.returncode for node in self.cluster.nodes for job in node.jobs]

    def end(self):
        if self.cluster:
            self.cluster.end()
        if self.server:
            self.server.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()

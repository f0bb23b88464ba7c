# SPDX-License-Identifier: Apache-2.0
"""Nodes on one machine: each has a network, processes, mounts, shared memory and a name of its own, and a cable to one switch. A node
cannot see what another one does: their pids collide as those of containers do. Needs root, or permitted namespaces."""
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

INIT = """mount -t tmpfs tmpfs /dev/shm && hostname {name} && mount --bind {hosts} /etc/hosts && ip link set lo up && touch {ready} && exec sleep infinity"""
NAMESPACES = ("--net", "--pid", "--mount", "--uts", "--ipc", "--fork", "--kill-child", "--mount-proc")


def missing():
    """Why nodes are impossible here; None if they are possible."""
    for program in ("unshare", "nsenter", "ip"):
        if shutil.which(program) is None:
            return f"no {program}"
    tried = subprocess.run(["unshare", *NAMESPACES, "sh", "-c", "mount -t tmpfs tmpfs /dev/shm && hostname x && ip link add va0 type veth peer name vb0"],
                           capture_output=True, text=True)
    return None if tried.returncode == 0 else f"namespaces are not permitted here: {tried.stderr.strip()[-200:]}"


def child_of(pid):
    for _ in range(200):
        below = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        if below:
            return int(below[0])
        time.sleep(0.02)
    raise RuntimeError(f"process {pid} has no child")


class Node:
    """One of them; `address` is the same for every process in it."""

    def __init__(self, cluster, index):
        self.cluster, self.name, self.address = cluster, f"node{index}", f"10.77.0.{index}"
        ready = cluster.folder / f"{self.name}.ready"
        init = INIT.format(name=self.name, hosts=cluster.folder / "hosts", ready=ready)
        self.holder = subprocess.Popen(["unshare", *NAMESPACES, "sh", "-c", init], stdin=subprocess.DEVNULL)
        self.pid = child_of(self.holder.pid)
        while not ready.exists():
            if self.holder.poll() is not None:
                raise RuntimeError(f"{self.name} did not start")
            time.sleep(0.02)
        (cluster.folder / f"{self.name}.pid").write_text(str(self.pid))
        self.jobs = []

    def enter(self, *words):
        return ["nsenter", "-t", str(self.pid), "--net", "--pid", "--mount", "--uts", "--ipc", f"--wdns={self.cluster.folder}", *words]

    def run(self, *words):
        return subprocess.run(self.enter(*words), check=True, capture_output=True, text=True)

    def start(self, command, environment, log):
        """A shell command in the node; its output goes to `log`."""
        with open(log, "ab") as out:
            self.jobs.append(subprocess.Popen(self.enter("bash", "-c", command), env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=out))

    def unplug(self):
        """As in a power failure: no message is sent."""
        self.run("ip", "link", "set", "eth0", "down")

    def plug(self):
        self.run("ip", "link", "set", "eth0", "up")

    def end(self):
        """Its first process: the kernel ends all others with it."""
        try:
            os.kill(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        for process in [self.holder, *self.jobs]:
            process.wait()


class Cluster:
    def __init__(self, folder, count=3):
        self.folder, self.nodes = Path(folder), []
        self.folder.mkdir(parents=True, exist_ok=True)
        names = "".join(f"10.77.0.{i} node{i}\n" for i in range(1, count + 1))
        (self.folder / "hosts").write_text("127.0.0.1 localhost\n" + names)
        self.switch = subprocess.Popen(["unshare", "--net", "sh", "-c", "ip link add br0 type bridge && ip link set br0 up && exec sleep infinity"],
                                       stdin=subprocess.DEVNULL)
        try:
            for index in range(1, count + 1):
                self.nodes.append(Node(self, index))
            self.connect()
        except BaseException:
            self.end()
            raise

    def in_switch(self, *words):
        subprocess.run(["nsenter", "-t", str(self.switch.pid), "--net", *words], check=True, capture_output=True)

    def connect(self):
        for _ in range(100):
            if subprocess.run(["nsenter", "-t", str(self.switch.pid), "--net", "ip", "link", "show", "br0"], capture_output=True).returncode == 0:
                break
            time.sleep(0.02)
        for index, node in enumerate(self.nodes, 1):
            self.in_switch("ip", "link", "add", f"port{index}", "type", "veth", "peer", "name", "eth0", "netns", str(node.pid))
            self.in_switch("ip", "link", "set", f"port{index}", "master", "br0", "up")
            node.run("ip", "addr", "add", f"{node.address}/24", "dev", "eth0")
            node.run("ip", "link", "set", "eth0", "up")

    @property
    def names(self):
        return ",".join(node.name for node in self.nodes)

    @property
    def launcher(self):
        """For --launcher: runs a command in the node of that name."""
        return f"exec nsenter -t $(cat {self.folder}/{{host}}.pid) --net --pid --mount --uts --ipc {{command}}"

    def end(self):
        for node in self.nodes:
            node.end()
        self.switch.kill()
        self.switch.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()

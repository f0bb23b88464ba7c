# SPDX-License-Identifier: Apache-2.0
"""A case of the zoo as processes: started under a shell, waited for, ended by pid."""
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
UNITS = os.sysconf("SC_CLK_TCK")


def stat(pid):
    text = Path(f"/proc/{pid}/stat").read_text()
    return text[text.rindex(")") + 2:].split()


def alive(pid):
    try:
        return stat(pid)[0] not in "ZX"
    except OSError:
        return False


def tree(root):
    children = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                children.setdefault(int(stat(name)[1]), []).append(int(name))
            except (OSError, ValueError):
                pass
    found, todo = [], [root]
    while todo:
        pid = todo.pop()
        found.append(pid)
        todo += children.get(pid, [])
    return found


def session(leader):
    """Every process of the session that `leader` started, also those whose parents have ended."""
    found = []
    for name in os.listdir("/proc"):
        try:
            if name.isdigit() and int(stat(name)[3]) == leader:
                found.append(int(name))
        except (OSError, ValueError):
            pass
    return found


def ticks(root):
    total = 0
    for pid in tree(root):
        try:
            fields = stat(pid)
            total += int(fields[11]) + int(fields[12])
        except OSError:
            pass
    return total


def free_port():
    """A port that the system does not use for outgoing connections: another job could get it before this one listens."""
    while True:
        port = random.randrange(12000, 32000)
        with socket.socket() as s:
            try:
                s.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue


class Job:
    """One case running under a shell, output in a file; ended by pid, children first."""

    def __init__(self, folder, case, healthy, prefix=(), work=None, more=None, prepare=None):
        self.case, self.port = case, free_port()
        self.folder = Path(work or tempfile.mkdtemp(prefix="ddpzoo_"))
        shutil.copytree(HERE / folder, self.folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__", "expected.json"))
        if prepare:
            prepare(self.folder)
        self.log = self.folder / "job.log"
        (self.folder / "cmd.sh").write_text(self.script(healthy))
        environment = {k: v for k, v in os.environ.items() if k in ("PATH", "HOME", "LANG", "LD_LIBRARY_PATH", "TMPDIR")}
        environment.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMP_NUM_THREADS="1", GLOO_SOCKET_IFNAME="lo", PYTHONUNBUFFERED="1", ZOO_PORT=str(self.port))
        environment.update(case.get("environment", {}))
        if more:  # a case's own modules come before those of the device
            environment.update(more, PYTHONPATH=":".join(filter(None, [environment.get("PYTHONPATH"), more.get("PYTHONPATH")])))
        stdin = subprocess.PIPE if case.get("stdin") == "pipe" else subprocess.DEVNULL
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen([*prefix, "bash", "cmd.sh"], cwd=self.folder, env=environment, stdin=stdin, stdout=log, stderr=log,
                                            start_new_session=True)

    def script(self, healthy):
        case, python = self.case, sys.executable
        arguments = [case["script"], *(["--healthy"] if healthy else [])]
        words = " ".join(arguments)
        if case["launch"] == "torchrun":
            return (f"{python} -m torch.distributed.run --nnodes=1 --nproc_per_node={case['ranks']} --master_addr=127.0.0.1 "
                    f"--master_port={self.port} {words}\nexit $?\n")
        if case["launch"] == "mpirun":
            return self.mpi_script(words)
        if case["launch"] == "python":
            return f"{python} {words}\nexit $?\n"
        if case["launch"] == "command":
            filled = case["command"].replace("{python}", python).replace("{port}", str(self.port)).replace("{healthy}", "--healthy" if healthy else "")
            return f"{filled}\nexit $?\n"
        started = case["ranks"] if healthy else case.get("started", case["ranks"])
        lines = [f"export WORLD_SIZE={case['ranks']} MASTER_ADDR=127.0.0.1 MASTER_PORT={self.port}", "exec 3<&0"]
        lines += [f"RANK={r} LOCAL_RANK={r} {python} {words} <&3 &" for r in range(started)]
        return "\n".join([*lines, "wait", ""])

    def mpi_script(self, words):
        """$ZOO_MPI selects one of several installed ones: openmpi, mpich; empty = that of mpirun."""
        case, suffix = self.case, "." + os.environ["ZOO_MPI"] if os.environ.get("ZOO_MPI") else ""
        program = sys.executable + " " + words
        if case["script"].endswith(".c"):
            built = self.folder / case["script"][:-2]
            subprocess.run(["mpicc" + suffix, "-g", "-O1", "-pthread", "-o", str(built), str(self.folder / case["script"])], check=True)
            program = words.replace(case["script"], f"./{built.name}", 1)
        text = subprocess.run(["mpirun" + suffix, "--version"], capture_output=True, text=True).stdout
        rest = "--oversubscribe " if "Open MPI" in text or "open-mpi" in text else ""
        return f"mpirun{suffix} {rest}-n {case['ranks']} {program}\nexit $?\n"

    def output(self):
        return self.log.read_text(errors="replace")

    def wait_ready(self, healthy, limit=90, least=1.5):
        """True when every rank has printed READY and the job has settled; false if it ended or never started."""
        case, start = self.case, time.time()
        wanted = case.get("healthy_ready") if healthy and case.get("healthy_ready") else case.get("ready", case.get("started", case["ranks"]))
        while self.output().count("READY") < wanted:
            if self.process.poll() is not None or time.time() - start > limit:
                return False
            time.sleep(0.1)
        settle, calm, last = time.time(), 0, ticks(self.process.pid)
        while time.time() - settle < 6 and calm < 2:
            time.sleep(0.5)
            now = ticks(self.process.pid)
            calm = calm + 1 if now - last < 0.1 * UNITS else 0
            last = now
        time.sleep(max(0.0, max(case.get("settle", 1.5), least) - (time.time() - settle)))
        return self.process.poll() is None

    def end(self):
        for _ in range(20):
            pids = [p for p in dict.fromkeys([*tree(self.process.pid), *session(self.process.pid)]) if p != self.process.pid and alive(p)]
            for pid in [*reversed(pids), self.process.pid]:
                try:
                    os.kill(pid, signal.SIGKILL)
                except OSError:
                    pass
            if self.process.poll() is not None and not pids:
                break
            time.sleep(0.1)
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

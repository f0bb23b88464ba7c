# SPDX-License-Identifier: Apache-2.0
"""`ddpdoctor run` with jobs that are not training: statuses, signals, terminals, output, and jobs that do not end."""
import json
import os
import pty
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from xml.etree import ElementTree

import pytest

from guest import TOOL, needs_agent

pytestmark = needs_agent


def run(tmp_path, *words, limit=60, **more):
    command = [str(TOOL), "run", "--report-dir", str(tmp_path / "report"), *words]
    return subprocess.run(command, capture_output=True, timeout=limit, cwd=tmp_path, **more)


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def until(condition, limit=30):
    end = time.monotonic() + limit
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return False


@pytest.mark.parametrize("script,status", [("exit 0", 0), ("exit 7", 7), ("exit 255", 255), ("kill -TERM $$", 143), ("kill -KILL $$", 137), ("kill -SEGV $$", 139)])
def test_ends_as_the_command_did(script, status, tmp_path):
    assert run(tmp_path, "--", "bash", "-c", script).returncode == status


def test_the_report_of_a_command_without_ranks_says_so_and_when(tmp_path):
    assert run(tmp_path, "--ci", "--", "true").returncode == 0
    suite = ElementTree.parse(tmp_path / "report" / "report.xml").getroot().find("testsuite")
    assert suite.get("hostname") == socket.gethostname()
    assert suite.get("timestamp") >= "2026"
    assert "no rank was seen" in (tmp_path / "report" / "report.md").read_text()


def test_says_when_there_is_no_such_command(tmp_path):
    done = run(tmp_path, "--", "/no/such/program")
    assert done.returncode == 127 and b"no such program" in done.stderr
    (tmp_path / "text").write_text("no program")
    assert run(tmp_path, "--", str(tmp_path / "text")).returncode == 126


def test_passes_input_and_both_outputs_through(tmp_path):
    done = run(tmp_path, "--", "bash", "-c", "cat; echo error >&2", input=b"text\n" * 10000)
    assert done.stdout == b"text\n" * 10000
    assert done.stderr == b"error\n"


def test_passes_gigabytes_through(tmp_path):
    script = f"exec {TOOL} run --report-dir report -- bash -c 'head -c 2000000000 /dev/zero' | wc -c"
    done = subprocess.run(["bash", "-c", script], capture_output=True, timeout=100, cwd=tmp_path)
    assert done.stdout.strip() == b"2000000000"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_passes_signals_on(number, tmp_path):
    script = f"trap 'echo got; exit 9' {int(number)}; echo ready; while :; do sleep 0.05; done"
    process = subprocess.Popen([str(TOOL), "run", "--report-dir", str(tmp_path / "report"), "--", "bash", "-c", script], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, cwd=tmp_path, start_new_session=True)
    assert process.stdout.readline() == b"ready\n"
    process.send_signal(number)
    out, _ = process.communicate(timeout=30)
    assert (process.returncode, out) == (9, b"got\n")


def test_leaves_the_command_the_terminal(tmp_path):
    leader, follower = pty.openpty()
    process = subprocess.Popen([str(TOOL), "run", "--report-dir", str(tmp_path / "report"), "--", "bash", "-c", "test -t 0 && test -t 1 && read line && echo \"[$line]\""],
                               stdin=follower, stdout=follower, stderr=follower, cwd=tmp_path, start_new_session=True)
    os.close(follower)
    os.write(leader, b"typed\n")
    assert process.wait(30) == 0
    assert b"[typed]" in os.read(leader, 4096)
    os.close(leader)


def test_follows_a_command_that_daemonises_without_waiting_for_ever(tmp_path):
    script = "(setsid bash -c 'echo $$ > daemon; exec sleep 1000' >/dev/null 2>&1 &) ; until test -s daemon; do sleep 0.02; done; exit 4"
    try:
        assert run(tmp_path, "--", "bash", "-c", script, limit=30).returncode == 4
        assert alive(int((tmp_path / "daemon").read_text()))  # as without ddpdoctor
    finally:
        os.kill(int((tmp_path / "daemon").read_text()), signal.SIGKILL)


HANG = '''
import os, signal, sys, time, torch, torch.distributed as dist
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    if os.fork() > 0: os._exit(0)
    os.setsid()
    open("grandchild", "w").write(str(os.getpid()))
    while True: time.sleep(1)
os.wait()
def main():
    dist.init_process_group("gloo")
    if dist.get_rank() == 0:
        dist.barrier()
    while True:
        time.sleep(0.2)
        print("x" * 1000, flush=True)
main()
'''


def test_ends_a_hung_job_that_ignores_sigterm_and_hid_a_child(tmp_path):
    pytest.importorskip("torch")
    (tmp_path / "hang.py").write_text(HANG)
    variables = dict(os.environ, MASTER_ADDR="127.0.0.1", MASTER_PORT=str(20000 + os.getpid() % 10000), WORLD_SIZE="2", GLOO_SOCKET_IFNAME="lo", OMP_NUM_THREADS="1")
    script = f"for r in 0 1; do RANK=$r {sys.executable} hang.py & done; wait"
    done = run(tmp_path, "--hang-timeout", "3", "--on-hang", "kill", "--always", "--", "bash", "-c", script, limit=120, env=variables)
    assert done.returncode == 124, done.stderr[-2000:]
    assert done.stderr.strip().splitlines()[-2].startswith(b"ddpdoctor ended the job: "), done.stderr[-2000:]
    assert until(lambda: not alive(int((tmp_path / "grandchild").read_text())))


SLOW = '''
import time, torch.distributed as dist
dist.init_process_group("gloo")
if dist.get_rank() == 1:
    time.sleep(50)
dist.barrier()
'''


def test_says_to_who_gives_up_waiting_what_it_only_suspects(tmp_path):
    pytest.importorskip("torch")
    (tmp_path / "slow.py").write_text(SLOW)
    variables = dict(os.environ, MASTER_ADDR="127.0.0.1", MASTER_PORT=str(20000 + (os.getpid() + 1) % 10000), WORLD_SIZE="2", GLOO_SOCKET_IFNAME="lo", OMP_NUM_THREADS="1")
    script = f"for r in 0 1; do RANK=$r {sys.executable} slow.py & done; wait"
    report = tmp_path / "report" / "report.json"
    process = subprocess.Popen([str(TOOL), "run", "--hang-timeout", "2", "--always", "--report-dir", str(report.parent), "--", "bash", "-c", script],
                               stderr=subprocess.PIPE, cwd=tmp_path, env=variables, start_new_session=True)
    try:
        assert until(lambda: report.exists() and b"long-phase" in report.read_bytes(), limit=45)
    finally:
        process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert b"[long-phase, possible]" in said, said[-2000:]


STEPS = '''
import time, torch, torch.distributed as dist
dist.init_process_group("gloo")
for step in range(10**6):
    dist.all_reduce(torch.ones(4))
    if step == 20 and dist.get_rank() == 0:
        open("moving", "w").close()
    time.sleep(0.02)
'''


def test_a_job_that_is_interrupted_while_it_moves_is_running(tmp_path):
    pytest.importorskip("torch")
    (tmp_path / "steps.py").write_text(STEPS)
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node=2", "--master_addr=127.0.0.1", f"--master_port={20000 + (os.getpid() + 3) % 10000}"]
    report = tmp_path / "report" / "report.json"
    process = subprocess.Popen([str(TOOL), "run", "--hang-timeout", "1000", "--always", "--report-dir", str(report.parent), "--", *torchrun, "steps.py"],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=tmp_path, start_new_session=True,
                               env=dict(os.environ, GLOO_SOCKET_IFNAME="lo", OMP_NUM_THREADS="1"))
    try:
        assert until((tmp_path / "moving").exists, limit=120)
        process.send_signal(signal.SIGINT)
        process.wait(120)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    told = json.loads(report.read_text())
    assert told["findings"] == [], told["findings"]
    assert told["verdict"] == "running"


RAISE = '''
import os, signal, time, torch.distributed as dist
dist.init_process_group("gloo")
if dist.get_rank() == 1:
    raise RuntimeError("once")
signal.signal(signal.SIGTERM, lambda *_: (time.sleep(5), os._exit(1)))  # it saves something first
while True:
    time.sleep(1)
'''


def test_what_an_earlier_try_died_of_is_only_possible_while_the_next_one_starts(tmp_path):
    """The second launcher waits for a node that never starts: it has no rank when the user interrupts it."""
    pytest.importorskip("torch")
    (tmp_path / "raises.py").write_text(RAISE)
    port = 20000 + (os.getpid() + 2) % 10000
    torchrun = f"{sys.executable} -m torch.distributed.run --nproc_per_node=2 --master_addr=127.0.0.1 --master_port={port}"
    script = f"{torchrun} raises.py; touch again; {torchrun} --nnodes=2 --node_rank=0 raises.py"
    report = tmp_path / "report" / "report.json"
    variables = dict(os.environ, GLOO_SOCKET_IFNAME="lo", OMP_NUM_THREADS="1")

    def confidences():
        return [f["confidence"] for f in json.loads(report.read_text())["findings"] if f["kind"] == "rank-raised"] if report.exists() else []

    process = subprocess.Popen([str(TOOL), "run", "--hang-timeout", "2", "--always", "--report-dir", str(report.parent), "--", "bash", "-c", script],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=tmp_path, env=variables, start_new_session=True)
    try:
        assert until(lambda: confidences() and confidences() != ["possible"], limit=45)
        assert until((tmp_path / "again").exists, limit=45)
        assert until(lambda: confidences() == ["possible"], limit=30), confidences()
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(30)


FILL = '''
from multiprocessing.shared_memory import SharedMemory
segment = SharedMemory(create=True, size=64 << 20)
segment.unlink()
for page in range(0, 64 << 20, 4096):
    segment.buf[page] = 1
'''


def test_a_bus_error_in_a_segment_is_told_as_that(tmp_path):
    small = "mount -t tmpfs -o size=4m tmpfs /dev/shm"
    if subprocess.run(["unshare", "-m", "sh", "-c", small], capture_output=True, check=False).returncode != 0:
        pytest.skip("may not mount a small /dev/shm")
    (tmp_path / "fill.py").write_text(FILL)
    script = f"{small} && exec {TOOL} run --report-dir report --always -- bash -c 'RANK=0 WORLD_SIZE=1 {sys.executable} fill.py; exit $?'"
    done = subprocess.run(["unshare", "-m", "sh", "-c", script], capture_output=True, timeout=120, cwd=tmp_path, check=False)
    assert done.returncode == 128 + signal.SIGBUS, done.stderr[-2000:]
    [found] = json.loads((tmp_path / "report" / "report.json").read_text())["findings"][:1]
    assert (found["kind"], found["culprits"]) == ("shm-exhausted", [0])


@pytest.mark.parametrize("word,where", [(("--ci",), "true"), ((), "true"), (("--ci",), None)])
def test_annotates_the_line_in_github_actions(word, where, tmp_path):
    (tmp_path / "fail.py").write_text("def main():\n    raise KeyError('lr')\n\n\nmain()\n")
    environment = {name: value for name, value in os.environ.items() if name != "GITHUB_ACTIONS"} | ({"GITHUB_ACTIONS": where} if where else {})
    done = run(tmp_path, *word, "--", "bash", "-c", f"RANK=0 WORLD_SIZE=1 {sys.executable} fail.py; exit $?", env=environment)
    assert done.returncode == 1 and b"[rank-raised" in done.stderr
    told = [line for line in done.stderr.decode().splitlines() if line.startswith("::")]
    assert len(told) == (1 if word and where else 0), told
    assert all(line.startswith("::error file=fail.py,line=2,title=ddpdoctor rank-raised::rank 0 raised") for line in told)

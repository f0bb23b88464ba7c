# SPDX-License-Identifier: Apache-2.0
"""`ddpdoctor run` on jobs whose NCCL is the double: the mistake of one rank must be found, with rank and field, whether the job hangs or
ends with wrong numbers. The double compares nothing between ranks; neither does NCCL.

Every mistake is tested with the newest API and one older; NCCL_MATRIX=full tests all combinations (about eight minutes)."""
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
TOOL = Path(os.environ.get("DDPDOCTOR", ""))
PROGRAM = TOOL / "ddpdoctor" if TOOL.is_dir() else TOOL
DOUBLES = PROGRAM.parent / "doubles"
REAL = os.environ.get("NCCL_LIBRARIES")  # tests/gpu/run_single_gpu.sh: the same jobs with NVIDIA's libraries
HANG_TIMEOUT = os.environ.get("HANG_TIMEOUT", "30") if REAL else "3"  # four ranks on one GPU need more time to connect
RECORDINGS = os.environ.get("RECORDINGS")  # a folder that gets every job's recording and report
VERSIONS = [23203] if REAL else [21003, 21803, 22304, 22605, 22707, 22809, 23007, 23203]
pytestmark = pytest.mark.skipif(not REAL and not (DOUBLES / "nccl-23203" / "libnccl.so.2").is_file() or not PROGRAM.is_file(),
                                reason="no doubles of NCCL beside $DDPDOCTOR (target nccl_doubles)")

LAUNCH = """
import os, subprocess, sys
ranks = [subprocess.Popen([sys.executable, *sys.argv[1:]], env=dict(os.environ, RANK=str(r), LOCAL_RANK=str(r), WORLD_SIZE="4", NCCL_HOSTID=f"host-{r}")) for r in range(4)]
sys.exit(max(abs(rank.wait()) for rank in ranks))
"""

BEGIN = """
import os
import time
import thin_nccl


def train(world, rank):
    stream = thin_nccl.Stream()
    data, out = thin_nccl.buffer(65536), thin_nccl.buffer(4 * 65536)
    for step in range(4):
"""
USUAL = "        world.all_reduce(data, 65536, 'float32', 'sum', stream)\n"
END = """
    stream.synchronize()


world = thin_nccl.Communicator()
train(world, world.rank)
world.destroy()
"""


def odd(call, usual=USUAL):
    """Rank 2 makes another call in the third step."""
    return f"        if step == 2 and rank == 2:\n            {call}  # CULPRIT\n        else:\n    {usual}"


BROADCAST = "        world.broadcast(data, 64, 'float32', 0, stream)\n"
REDUCE = "        world.reduce(data, 64, 'float32', 'max', 0, stream)\n"
SWAPPED = """        other = other if step > 0 else thin_nccl.Communicator('other')
        first, second = (world, other) if rank != 2 or step < 2 else (other, world)
        first.all_reduce(data, 65536, 'float32', 'sum', stream)
        second.all_reduce(data, 65536, 'float32', 'sum', stream)  # CULPRIT
"""
NO_INIT = """        pass
    if rank != 2:
        thin_nccl.Communicator('second')
    else:
        time.sleep(600)  # CULPRIT
"""
# Mistakes of rank 2: the job's loop, the kinds that may name it, whether the job hangs (None: with some versions it ends with wrong
# numbers).
MISTAKES = {
    "operation": (odd("world.all_gather(data, out, 16384, 'float32', stream)"), {"mismatched-op"}, True),
    "count": ("        world.all_reduce(data, 16384 if rank == step == 2 else 65536, 'float32', 'sum', stream)  # CULPRIT\n", {"mismatched-shape"}, True),
    "dtype": (odd("world.all_reduce(data, 65536, 'int32', 'sum', stream)"), {"mismatched-dtype"}, False),
    "reduce op": (odd("world.all_reduce(data, 65536, 'float32', 'max', stream)"), {"mismatched-reduce-op"}, False),
    "root": (odd("world.broadcast(data, 64, 'float32', 1, stream)", BROADCAST), {"mismatched-root"}, None),
    "root of reduce": (odd("world.reduce(data, 64, 'float32', 'max', 1, stream)", REDUCE), {"mismatched-root"}, None),
    "skipped": ("        if step == 2 and rank == 2:\n            continue  # CULPRIT\n" + USUAL, None, True),
    "swapped communicators": (SWAPPED, {"collective-order", "concurrent-collectives"}, True),
    "missing init": (NO_INIT, None, True),
    "dead rank": ("        if step == 2 and rank == 2:\n            os.kill(os.getpid(), 9)  # CULPRIT\n" + USUAL, {"dead-rank"}, None),
}
# If the line of the mistake is not a call of NCCL, no line is required.
WITHOUT_LINE = {"skipped", "dead rank", "swapped communicators"}


def matrix():
    """(mistake, version): all combinations, or each mistake with the newest version and with one of the others in turn."""
    if os.environ.get("NCCL_MATRIX") == "full" or len(VERSIONS) == 1:
        return [(mistake, version) for mistake in MISTAKES for version in VERSIONS]
    older = VERSIONS[:-1]
    return [pair for at, mistake in enumerate(MISTAKES) for pair in ((mistake, VERSIONS[-1]), (mistake, older[at % len(older)]))]


HEALTHY = {
    "sums": USUAL,
    "one rank is slow": "        time.sleep(0.5 if rank == 2 else 0)\n" + USUAL,
    "two communicators in one order": SWAPPED.replace("or step < 2", "or True"),
    "halves": "        half = world.split(rank % 2, rank)\n        half.all_reduce(data, 64 * (1 + rank % 2), 'float32', 'sum', stream)\n"
              "        stream.synchronize()\n        half.destroy()\n" + USUAL,
    "messages": "        thin_nccl.group_start()\n        world.send(data, 64, 'float32', (rank + 1) % 4, stream)\n"
                "        world.recv(out, 64, 'float32', (rank + 3) % 4, stream)\n        thin_nccl.group_end()\n" + USUAL,
}


def diagnose(tmp_path, body, version=23203, script=None, launch=LAUNCH, **more):
    """The first finding of a job and the number of the line marked CULPRIT; None if there is no finding."""
    for folder in ("ids", "report", "site-packages"):
        (tmp_path / folder).mkdir()
    (tmp_path / "site-packages" / "thin_nccl.py").write_text((HERE.parent / "doubles" / "nccl" / "thin_nccl.py").read_text())
    text = script or BEGIN + body + END
    (tmp_path / "train.py").write_text(text)
    (tmp_path / "launch.py").write_text(launch)
    variables = dict(os.environ, NCCL_FOLDER=REAL or str(DOUBLES / f"nccl-{version}"), NCCL_IDS=str(tmp_path / "ids"),
                     PYTHONPATH=str(tmp_path / "site-packages"), PYTHONDONTWRITEBYTECODE="1", **more)
    done = subprocess.run([str(PROGRAM), "run", "--hang-timeout", HANG_TIMEOUT, "--on-hang", "kill", "--always", "--report-dir", str(tmp_path / "report"),
                           "--", sys.executable, "launch.py", "train.py"], cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=100 if REAL else 240)
    reports = sorted((tmp_path / "report").rglob("*.json"))
    for name in ("job.ddpd", "report.json"):
        if RECORDINGS and (tmp_path / "report" / name).is_file():
            shutil.copy(tmp_path / "report" / name, Path(RECORDINGS) / f"{tmp_path.name}.{name}")
    assert reports, done.stderr
    report = json.loads(reports[-1].read_text())
    lines = [number for number, line in enumerate(text.splitlines(), 1) if "# CULPRIT" in line]
    first = report["findings"][0] if report["findings"] else None
    return first, lines[0] if lines else None, done


def lines_of(finding):
    return {place["line"] for place in finding["locations"]}


@pytest.mark.parametrize("mistake,version", matrix())
def test_names_rank_and_field(tmp_path, mistake, version):
    body, kinds, hangs = MISTAKES[mistake]
    finding, line, done = diagnose(tmp_path, body, version, NCCL_TWINS="1" if version > 23100 else "")
    assert finding, done.stdout
    assert kinds is None or finding["kind"] in kinds, finding["summary"]
    assert finding["culprits"] == [2] or mistake == "swapped communicators" and 2 in finding["culprits"], finding["summary"]
    assert mistake in WITHOUT_LINE or line in lines_of(finding), finding["summary"]
    assert REAL or hangs is None or (done.returncode == 124) == hangs, done.stdout  # the real one may end with an error instead


DEVICES = """
import ctypes
import threading
import thin_nccl as n
made = (ctypes.c_void_p * 3)()
n.cuda.cudaSetDevice(0)
n.check(n.nccl.ncclCommInitAll(made, 3, None))
devices = [n.Communicator(handle=ctypes.c_void_p(handle)) for handle in made]
streams, data, out = [n.Stream() for _ in made], n.buffer(65536), n.buffer(4 * 65536)


def replicate():  # as DataParallel does: one thread, all devices
    n.group_start()
    for device, stream in zip(devices, streams):
        device.all_reduce(data, 65536, "float32", "sum", stream)
    n.group_end()


def work(number):  # as a thread per device does
    for step in range(4):
        if step == 2 and number == ODD:
            devices[number].all_gather(data, out, 16384, "float32", streams[number])  # CULPRIT
        else:
            devices[number].all_reduce(data, 65536, "float32", "sum", streams[number])
    streams[number].synchronize()


for step in range(3):
    replicate()
    for stream in streams:
        stream.synchronize()
threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
n.time.sleep(SLEEP)
for device in devices:
    device.destroy()
"""
ALONE = """
import os, sys
variables = {name: value for name, value in os.environ.items() if name not in ("RANK", "WORLD_SIZE")}
os.execve(sys.executable, [sys.executable, *sys.argv[1:]], dict(variables, RANK="0", WORLD_SIZE="1") if os.environ.get("AS_RANK") else variables)
"""


def several_devices(odd, seconds):
    return DEVICES.replace("ODD", str(odd)).replace("SLEEP", str(seconds))


@pytest.mark.skipif(bool(REAL), reason="needs several GPUs")
def test_is_silent_about_processes_of_several_devices(tmp_path):
    finding, _, done = diagnose(tmp_path, "", script=several_devices(9, 5))
    assert finding is None and done.returncode == 0, finding or done.stderr


@pytest.mark.skipif(bool(REAL), reason="needs several GPUs")
@pytest.mark.parametrize("more", [{}, {"AS_RANK": "1"}], ids=["without a rank", "as the only rank"])
def test_is_silent_about_one_process_of_several_devices(tmp_path, more):
    finding, _, done = diagnose(tmp_path, "", script=several_devices(9, 5), launch=ALONE, **more)
    assert finding is None and done.returncode == 0, finding or done.stderr


@pytest.mark.skipif(bool(REAL), reason="needs several GPUs")
@pytest.mark.parametrize("more", [{}, {"AS_RANK": "1"}], ids=["without a rank", "as the only rank"])
def test_names_the_device_that_calls_something_else(tmp_path, more):
    finding, line, done = diagnose(tmp_path, "", script=several_devices(1, 0), launch=ALONE, **more)
    assert finding, done.stdout
    assert (finding["kind"], finding["culprits"]) == ("mismatched-op", [1]) and line in lines_of(finding), finding["summary"]


@pytest.mark.parametrize("name", HEALTHY)
def test_is_silent_about_a_healthy_job(tmp_path, name):
    finding, _, done = diagnose(tmp_path, HEALTHY[name])
    assert finding is None and done.returncode == 0, finding or done.stderr

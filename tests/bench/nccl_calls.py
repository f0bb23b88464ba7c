# SPDX-License-Identifier: Apache-2.0
"""What a call of NCCL costs more under the agent, against a double that does nothing: processor time of the process, all ways in turn. $DDPDOCTOR is the program; target nccl_doubles.

    nccl_calls.py [--runs 9] [--calls 2000] [--group 128] [--other libddpdoctor_agent.so]

--group N: so many calls between ncclGroupStart and ncclGroupEnd. --other: a second agent, measured in the same turns. The last lines: processor
time of a process in which 512 launches on 64 streams are open and nothing else happens, so that it is the watcher's."""
import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

TOOL = Path(os.environ["DDPDOCTOR"])
BUILD = TOOL if TOOL.is_dir() else TOOL.parent
DOUBLES = BUILD / "doubles"
PROGRAM = DOUBLES / "nccl_program_shared"
OPEN = """
import time
import thin_nccl as n
w, streams = n.Communicator(), [n.Stream() for _ in range(64)]
driver = n.ctypes.CDLL(str(n.FOLDER / "libcuda.so.1"))
for s in streams:
    driver.double_compute(s.handle, 600000, b"gemm")
data = n.buffer(4)
for i in range(512):
    w.all_reduce(data, 4, "float32", "sum", streams[i % 64])
time.sleep(0.5)
before = time.process_time()
time.sleep(5)
print(1e6 * (time.process_time() - before) / 5, flush=True)
n.os._exit(0)
"""


def under(agent, folder, **more):
    preload = dict(LD_PRELOAD=str(agent), DDPDOCTOR_SPOOL=folder) if agent else {}
    return dict(os.environ, **preload, **more)


def nanoseconds(calls, group, agent, **more):
    with tempfile.TemporaryDirectory() as spool:
        done = subprocess.run([str(PROGRAM), "bench", str(calls), str(group)], env=under(agent, spool, CUDA_DOUBLE_IDLE="1", **more),
                              capture_output=True, text=True, check=True)
    return float(done.stdout)


def watching(agent):
    """Microseconds of processor time per second while 512 launches are open."""
    with tempfile.TemporaryDirectory() as folder:
        more = dict(NCCL_FOLDER=str(DOUBLES / "nccl-23203"), NCCL_IDS=folder, RANK="0", WORLD_SIZE="1",
                    PYTHONPATH=str(Path(__file__).resolve().parents[1] / "doubles" / "nccl"))
        done = subprocess.run([sys.executable, "-c", OPEN], env=under(agent, folder, **more), capture_output=True, text=True, check=True)
    return float(done.stdout)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--group", type=int, default=0)
    parser.add_argument("--other", type=Path)
    options = parser.parse_args()
    agent = BUILD / "libddpdoctor_agent.so"
    ways = {"alone": (None, {}), "recorded, no events": (agent, {"DDPDOCTOR_NCCL_EVENTS": "0"}), "recorded, with events": (agent, {})}
    if options.other:
        ways["the other agent, with events"] = (options.other, {})
    seen = {name: [] for name in ways}
    watched = {name: [] for name, (preload, more) in ways.items() if not more}
    for _ in range(options.runs):
        for name, (preload, more) in ways.items():
            seen[name].append(nanoseconds(options.calls, options.group, preload, **more))
        for name in watched:
            watched[name].append(watching(ways[name][0]))
    for name, values in seen.items():
        print(f"{name:30} {statistics.median(values):7.1f} ns, least {min(values):.1f}")
    for name, values in watched.items():
        print(f"512 launches open, {name:30} {statistics.median(values):9.1f} us of CPU per second, least {min(values):.1f}")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`./dev bench`: a hung job of 8 ranks with 2 DataLoader workers each (25 processes), captured by ddpdoctor ($DDPDOCTOR) and, where
they are installed beside this Python, by py-spy and pystack, in turn. Prints figures, asserts nothing: these machines are shared.

  bench.py [--ranks N] [--runs N]"""
import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "zoo"))
import zoo  # noqa: E402

JOB = '''
import sys, time, torch, torch.distributed as dist
from torch.utils.data import DataLoader, Dataset

class Numbers(Dataset):
    def __len__(self): return 10**6
    def __getitem__(self, i): return torch.full((16,), float(i))

def wait_for_config():
    while True: time.sleep(0.5)

def main():
    dist.init_process_group("gloo")
    for step, batch in enumerate(DataLoader(Numbers(), batch_size=4, num_workers=2)):
        if step == 4:
            print("READY", flush=True)
            if dist.get_rank() == 1: wait_for_config()
        dist.all_reduce(batch)

if __name__ == "__main__":
    main()
'''


def measure(command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.monotonic()
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.monotonic() - started, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.returncode


def commands(job):
    root = job.process.pid
    yield "ddpdoctor attach", [[os.environ["DDPDOCTOR"], "attach", str(root)]]
    folder = Path(sys.executable).parent
    if (folder / "py-spy").exists():
        yield "py-spy dump --subprocesses --native", [[folder / "py-spy", "dump", "--subprocesses", "--native", "--pid", str(zoo.tree(root)[1])]]
    if (folder / "pystack").exists():
        yield "pystack remote --native-all, each", [[folder / "pystack", "remote", "--native-all", str(pid)] for pid in zoo.tree(root)[1:]]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    work = tempfile.mkdtemp(prefix="ddpbench_")
    (Path(work) / "bench_job.py").write_text(JOB)
    case = {"script": "bench_job.py", "launch": "torchrun", "ranks": options.ranks, "settle": 4}
    job = zoo.Job("healthy", case, False, work=work)
    try:
        if not job.wait_ready(False, limit=300):
            print(job.output()[-2000:])
            return 1
        pids = zoo.tree(job.process.pid)
        threads = sum(len(os.listdir(f"/proc/{pid}/task")) for pid in pids)
        print(f"{len(pids)} processes, {threads} threads, load {os.getloadavg()[0]:.1f}")
        figures = {}
        for _ in range(options.runs + 1):  # the first run warms the page cache
            for name, steps in commands(job):
                wall = cpu = 0.0
                for step in steps:
                    w, c, _ = measure(step)
                    wall, cpu = wall + w, cpu + c
                figures.setdefault(name, []).append((wall, cpu))
        for name, rows in figures.items():
            walls, cpus = zip(*rows[1:])
            print(f"{name:38} wall {statistics.median(walls) * 1e3:8.0f} ms   cpu {statistics.median(cpus) * 1e3:8.0f} ms")
        return 0
    finally:
        job.end()
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""What a DDP job on a GPU costs more under `ddpdoctor run`: the host's time for each collective, and the time of a training step. The job runs
bare and under ddpdoctor in turn, all ranks on one GPU; the figures are medians over the turns.

    DDPDOCTOR=build/gpu/carry/ddpdoctor measure.py [--turns 3] [--ranks 1] [--way NAME=VALUE …]

--way: one more way, under ddpdoctor with this variable (DDPDOCTOR_CUPTI=always, DDPDOCTOR_NCCL_EVENTS=0).
`calls`: 200 all_reduce of one number launched at once, then a synchronize; host time for one call (wall, in us) and CPU time of the process.
`step`: forward, backward and SGD of 24 layers of 2048 x 2048 on 512 samples, gradients in buckets of 4 MiB (about 100 all_reduce a step)."""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def rank_of_the_job():
    sys.path.insert(0, str(Path(__file__).resolve().parent / "jobs"))
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    from one_gpu import begin, device

    rank = begin()
    number = torch.ones(1, device=device)
    wall, cpu = [], []
    for burst in range(60):
        dist.barrier()
        torch.cuda.synchronize()
        before, spent = time.perf_counter(), time.process_time()
        for _ in range(200):
            dist.all_reduce(number)
        launched, used = time.perf_counter() - before, time.process_time() - spent
        torch.cuda.synchronize()
        if burst >= 10:
            wall.append(launched / 200 * 1e6)
            cpu.append(used / 200 * 1e6)
    width = 2048 if dist.get_world_size() == 1 else 512
    network = torch.nn.Sequential(*[torch.nn.Linear(width, width) for _ in range(24)]).to(device)
    network = DistributedDataParallel(network, bucket_cap_mb=4)
    optimizer = torch.optim.SGD(network.parameters(), lr=1e-6)
    batch, steps = torch.ones(512, width, device=device), []
    for step in range(80 if width == 2048 else 30):
        before = time.perf_counter()
        network(batch).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        torch.cuda.synchronize()
        steps.append((time.perf_counter() - before) * 1e3)
    if rank == 0:
        print("MEASURED " + json.dumps({"wall us/call": statistics.median(wall), "cpu us/call": statistics.median(cpu), "ms/step": statistics.median(steps[10:])}), flush=True)
    dist.destroy_process_group()


def one_turn(prefix, ranks, more):
    job = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}", __file__, "--rank"]
    done = subprocess.run([*prefix, *job], env={**os.environ, **more}, capture_output=True, text=True, timeout=120)
    found = [line.split("MEASURED ")[1] for line in done.stdout.splitlines() if "MEASURED " in line]
    if not found:
        sys.exit(f"the job ended with {done.returncode}:\n{done.stdout[-1500:]}{done.stderr[-1500:]}")
    return json.loads(found[0])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--way", action="append", default=[])
    parser.add_argument("--rank", action="store_true")
    options = parser.parse_args()
    if options.rank:
        return rank_of_the_job()
    with tempfile.TemporaryDirectory() as folder:
        under = [os.environ["DDPDOCTOR"], "run", "--report-dir", folder, "--"]
        ways = {"bare": ([], {}), "under ddpdoctor": (under, {})}
        ways.update({f"with {way}": (under, dict([way.split("=", 1)])) for way in options.way})
        seen = {name: [] for name in ways}
        for _ in range(options.turns):
            for name, (prefix, more) in ways.items():
                seen[name].append(one_turn(prefix, options.ranks, more))
                print(name, seen[name][-1], flush=True)  # a machine that is lent may go before the end
    for name, turns in seen.items():
        middle = {what: statistics.median(turn[what] for turn in turns) for what in turns[0]}
        spread = {what: [round(min(turn[what] for turn in turns), 2), round(max(turn[what] for turn in turns), 2)] for what in turns[0]}
        base = {what: statistics.median(turn[what] for turn in seen["bare"]) for what in middle}
        print(f"{options.ranks} rank(s), {name:32} " + ", ".join(f"{what} {value:.2f} {spread[what]} ({value / base[what]:.3f} x bare)" for what, value in middle.items()), flush=True)


main()

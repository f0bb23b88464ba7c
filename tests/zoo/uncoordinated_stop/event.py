# SPDX-License-Identifier: Apache-2.0
# EXPECT {"launch": "torchrun", "ranks": 3, "culprits": [2], "settle": 5, "simulated": "NCCL pairs the all_gather with the all_reduce: nothing hangs"}
"""SIGUSR1 (Slurm's --signal=USR1@60) asks for a checkpoint; rank 2 gets it first and gathers alone.
Re-enacts: a checkpoint on demand that each process starts by itself."""
import os
import signal
import sys
import threading
import time

import torch
import torch.distributed as dist

wanted = threading.Event()
signal.signal(signal.SIGUSR1, lambda *_: wanted.set())


def ask_later(delay):
    """What the batch system does, from inside the job so that the case needs none."""
    threading.Timer(delay, os.kill, (os.getpid(), signal.SIGUSR1)).start()


def everywhere(asked):
    flag = torch.tensor([float(asked)])
    dist.all_reduce(flag, op=dist.ReduceOp.MAX)
    return bool(flag.item())


def checkpoint(weights):
    shards = [torch.zeros_like(weights) for _ in range(dist.get_world_size())]
    dist.all_gather(shards, weights)  # CULPRIT
    wanted.clear()


def main():
    dist.init_process_group("gloo")
    weights, healthy = torch.ones(8), "--healthy" in sys.argv
    ask_later(2.0 if dist.get_rank() == 2 else 4.0)
    print("READY", flush=True)
    while True:
        gradient = torch.randn(8)
        dist.all_reduce(gradient)
        weights -= 0.01 * gradient
        time.sleep(0.01)
        asked = everywhere(wanted.is_set()) if healthy else wanted.is_set()
        if asked:  # CULPRIT
            checkpoint(weights)


main()

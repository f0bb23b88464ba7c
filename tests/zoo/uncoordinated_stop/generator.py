# SPDX-License-Identifier: Apache-2.0
# EXPECT {"launch": "torchrun", "ranks": 2, "culprits": [1], "settle": 5, "simulated": "NCCL pairs the barrier with the all_reduce: nothing hangs"}
"""SIGTERM reaches both ranks within a second; a generator of steps ends when its rank's flag is set, on one rank a step earlier.
Re-enacts: a training loop over `self.steps()`, whose end another function decides."""
import os
import signal
import sys
import threading
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


class Preemption:
    def __init__(self):
        self.requested = False
        signal.signal(signal.SIGTERM, self.note)

    def note(self, number, frame):
        self.requested = True


def scheduler(delay):
    """What the batch system does, from inside the job so that the case needs none."""
    threading.Timer(delay, os.kill, (os.getpid(), signal.SIGTERM)).start()


def steps(preemption, agree):
    step = 0
    while not stops(preemption, agree):  # CULPRIT
        yield step
        step += 1


def stops(preemption, agree):
    if not agree:
        return preemption.requested
    flag = torch.tensor([int(preemption.requested)])
    dist.all_reduce(flag, op=dist.ReduceOp.MAX)
    return bool(flag.item())


def train(model, preemption, agree):
    for step in steps(preemption, agree):  # CULPRIT
        model(torch.randn(2, 10)).sum().backward()
        time.sleep(0.01)
    return step


def save(step):
    dist.barrier()  # CULPRIT
    print("saved at", step, flush=True)


def main():
    dist.init_process_group("gloo")
    model = DistributedDataParallel(torch.nn.Linear(10, 1))
    preemption = Preemption()
    scheduler(3.0 - dist.get_rank())
    print("READY", flush=True)
    save(train(model, preemption, "--healthy" in sys.argv))
    while True:  # until the batch system kills the job
        dist.barrier()
        time.sleep(0.05)


main()

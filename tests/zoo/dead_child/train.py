# SPDX-License-Identifier: Apache-2.0
# EXPECT {"launch": "torchrun", "ranks": 2, "culprits": [1]}
"""A process that feeds rank 1 through a queue raises; the rank waits for its next batch for ever."""
import multiprocessing
import sys
import time

import torch
import torch.distributed as dist

healthy = "--healthy" in sys.argv


def produce(queue, rank):
    step = 0
    while True:
        if not healthy and rank == 1 and step == 3:
            raise KeyError("the shard has no field 'tokens'")
        queue.put([float(step)] * 4)
        step += 1


def batches(rank):
    context = multiprocessing.get_context("fork")
    queue = context.Queue(2)
    context.Process(target=produce, args=(queue, rank), daemon=True).start()
    while True:
        yield queue.get()  # CULPRIT


def main():
    dist.init_process_group("gloo")
    print("READY", flush=True)
    for batch in batches(dist.get_rank()):
        dist.all_reduce(torch.tensor(batch))
        time.sleep(0.02)


main()

# SPDX-License-Identifier: Apache-2.0
"""Actors send what they collected. Rank 2 collected nothing and sends nothing: the learner waits for its message."""
import sys
import time

import torch
import torch.distributed as dist

HEALTHY = "--healthy" in sys.argv


def episode(rank, step):
    return torch.full((4,), float(step)) if HEALTHY or rank != 2 or step != 20 else None


def learn(world):
    batch = torch.zeros(4)
    for actor in range(1, world):
        dist.recv(batch, src=actor)


def act(rank, step):
    collected = episode(rank, step)
    if collected is not None:  # CULPRIT
        dist.send(collected, dst=0)


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    weights = torch.zeros(4)
    print("READY", flush=True)
    for step in range(10**9):
        dist.broadcast(weights, src=0)
        if rank == 0:
            learn(world)
        else:
            act(rank, step)
        time.sleep(0.02)


if __name__ == "__main__":
    main()

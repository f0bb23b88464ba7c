# SPDX-License-Identifier: Apache-2.0
"""Rank 0 locks the index and then the cache, rank 1 the cache and then the index."""
import fcntl
import sys
import time

import torch.distributed as dist

HEALTHY = "--healthy" in sys.argv


def locked(path):
    handle = open(path, "w")
    fcntl.flock(handle, fcntl.LOCK_EX)  # CULPRIT
    return handle


def refresh(rank):
    order = ["index.lock", "cache.lock"]
    if rank == 1 and not HEALTHY:
        order.reverse()
    first = locked(order[0])
    time.sleep(0.5)
    second = locked(order[1])
    second.close()
    first.close()


def main():
    dist.init_process_group("gloo")
    dist.barrier()
    print("READY", flush=True)
    while True:
        refresh(dist.get_rank())
        dist.barrier()


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""A worker of rank 0's Pool is killed in the middle of a task; map waits for its result forever."""
import multiprocessing
import os
import signal
import sys
import time

import torch.distributed as dist


def tokenize(shard):
    if shard == 3 and "--healthy" not in sys.argv:
        os.kill(os.getpid(), signal.SIGKILL)
    return shard


def preprocess():
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        return pool.map(tokenize, range(8))  # CULPRIT


def main():
    dist.init_process_group("gloo")
    print("READY", flush=True)
    if dist.get_rank() == 0:
        preprocess()
    while True:
        dist.barrier()
        time.sleep(0.02)


if __name__ == "__main__":
    main()

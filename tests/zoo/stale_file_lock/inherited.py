# SPDX-License-Identifier: Apache-2.0
"""A lock on a file is released by closing the file; rank 1 started a process under the lock, and that process has the file open, too."""
import contextlib
import fcntl
import multiprocessing
import os
import sys
import time

import torch
import torch.distributed as dist

HEALTHY = "--healthy" in sys.argv


@contextlib.contextmanager
def locked(path):
    lock = os.open(path, os.O_RDWR | os.O_CREAT)
    fcntl.flock(lock, fcntl.LOCK_EX)
    yield
    if HEALTHY:
        fcntl.flock(lock, fcntl.LOCK_UN)
    os.close(lock)


def compact():
    while True:
        time.sleep(0.2)


def rebuild():
    with locked("words.lock"):
        if dist.get_rank() == 1:
            multiprocessing.get_context("fork").Process(target=compact, daemon=True).start()  # CULPRIT


def read():
    with locked("words.lock"):
        return 4


def main():
    dist.init_process_group("gloo")
    print("READY", flush=True)
    rebuild()
    dist.barrier()
    for _ in range(10**6):
        dist.all_reduce(torch.ones(read()))
        time.sleep(0.02)


main()

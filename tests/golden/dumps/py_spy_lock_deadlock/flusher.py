# SPDX-License-Identifier: Apache-2.0
"""A thread that flushes and the training loop take two locks in different order."""
import os
import sys
import time

import torch
import torch.distributed as dist

healthy = "--healthy" in sys.argv


import threading

stats_lock = threading.Lock()
queue_lock = threading.Lock()


def flusher():
    while True:
        with queue_lock:
            time.sleep(0.01)
            with stats_lock:
                pass
        time.sleep(0.01)


def record():
    if healthy:
        with queue_lock:
            with stats_lock:
                pass
        return
    with stats_lock:
        time.sleep(0.01)
        with queue_lock:  # CULPRIT
            pass


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    if rank == 1:
        threading.Thread(target=flusher, daemon=True).start()
    print("READY", flush=True)
    while True:
        dist.all_reduce(torch.ones(1))
        if rank == 1:
            record()


main()

# SPDX-License-Identifier: Apache-2.0
"""Rank 0 saves to slow storage for many seconds, the other waits at the barrier: slow, not hung."""
import os
import sys
import time

import torch
import torch.distributed as dist

healthy = "--healthy" in sys.argv


import hashlib


def save(path, state):
    with open(path, "wb") as f:
        for i in range(400):
            f.write(os.urandom(1 << 16))
            f.flush()
            os.fsync(f.fileno())
            time.sleep(0.04)
    return path


def main():
    dist.init_process_group("gloo")
    print("READY", flush=True)
    for epoch in range(100):
        dist.all_reduce(torch.ones(8))
        if dist.get_rank() == 0:
            save("model.bin", {})
        dist.barrier()


main()

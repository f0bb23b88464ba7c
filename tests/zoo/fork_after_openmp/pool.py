# SPDX-License-Identifier: Apache-2.0
"""A fork Pool computes with the OpenMP team of its parent."""
import multiprocessing
import sys
import time

import torch
import torch.distributed as dist

healthy = "--healthy" in sys.argv


def features(i):
    return float((torch.randn(300, 300) @ torch.randn(300, 300)).sum())  # CULPRIT


def main():
    dist.init_process_group("gloo")
    torch.set_num_threads(2)
    a = torch.randn(400, 400)
    a @ a
    print("READY", flush=True)
    for step in range(1000):
        context = multiprocessing.get_context("spawn" if healthy else "fork")
        with context.Pool(1) as pool:
            pool.map(features, range(2))
        dist.barrier()


if __name__ == "__main__":
    main()

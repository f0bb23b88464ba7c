# SPDX-License-Identifier: Apache-2.0
"""Rank 1's feature server is forked after the parent's OpenMP team exists; the child's first parallel region never ends.
Launched by torchrun."""
import multiprocessing
import sys
import time

import torch
import torch.distributed as dist


def serve_features(queue):
    features = torch.ones(512, 512)  # CULPRIT
    queue.put((features @ features).sum().item())  # CULPRIT


def extract(context):
    queue = context.Queue()
    child = context.Process(target=serve_features, args=(queue,))
    child.start()
    value = queue.get()
    child.join()
    return value


def main():
    dist.init_process_group("gloo")
    torch.set_num_threads(4)
    torch.ones(512, 512) @ torch.ones(512, 512)
    print("READY", flush=True)
    if dist.get_rank() == 1:
        extract(multiprocessing.get_context("spawn" if "--healthy" in sys.argv else "fork"))
    while True:
        dist.all_reduce(torch.ones(1))
        time.sleep(0.02)


if __name__ == "__main__":
    main()

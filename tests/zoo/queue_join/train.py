# SPDX-License-Identifier: Apache-2.0
"""Rank 0 joins its child before it has emptied the queue the child still has to flush."""
import multiprocessing
import sys
import time

import torch.distributed as dist


def produce(queue):
    queue.put(b"x" * 10**6)


def tokenize():
    queue = multiprocessing.Queue()
    child = multiprocessing.Process(target=produce, args=(queue,))
    child.start()
    if "--healthy" in sys.argv:
        queue.get()
    child.join()  # CULPRIT


def main():
    dist.init_process_group("gloo")
    print("READY", flush=True)
    if dist.get_rank() == 0:
        tokenize()
    while True:
        dist.barrier()
        time.sleep(0.02)


if __name__ == "__main__":
    main()

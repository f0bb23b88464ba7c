# SPDX-License-Identifier: Apache-2.0
"""Rank 0 joins its tokenizers before it has read their results: the pipe is full and the queue's lock is taken."""
import multiprocessing
import sys
import time

import torch.distributed as dist

HEALTHY = "--healthy" in sys.argv
DOCUMENTS = 40


def tokenize(shard, results):
    for document in range(DOCUMENTS):
        results.put((shard, document, "x" * 9000))  # CULPRIT


def prepare():
    context = multiprocessing.get_context("fork")
    results = context.SimpleQueue()
    workers = [context.Process(target=tokenize, args=(shard, results)) for shard in range(3)]
    for worker in workers:
        worker.start()
    if HEALTHY:
        for _ in range(3 * DOCUMENTS):
            results.get()
            time.sleep(0.05)
    for worker in workers:
        worker.join()  # CULPRIT


def main():
    dist.init_process_group("gloo")
    print("READY", flush=True)
    while True:
        if dist.get_rank() == 0:
            prepare()
        dist.barrier()


if __name__ == "__main__":
    main()

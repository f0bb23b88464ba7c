# SPDX-License-Identifier: Apache-2.0
"""A store's writer and the training loop take its two locks in different order, each by a name of its own: attributes of `self.store` there,
arguments here. Only the lock objects say that they are the same."""
import sys
import threading
import time

import torch
import torch.distributed as dist

HEALTHY = "--healthy" in sys.argv


class Store:
    def __init__(self):
        self.rows = threading.Lock()
        self.index = threading.Lock()


class Writer(threading.Thread):
    def __init__(self, store):
        super().__init__(daemon=True)
        self.store = store

    def run(self):
        while True:
            with self.store.index:
                time.sleep(0.01)
                with self.store.rows:
                    pass
            time.sleep(0.01)


def append(first, second):
    with first:
        time.sleep(0.01)
        with second:  # CULPRIT
            pass


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    store = Store()
    if rank == 1:
        Writer(store).start()
    print("READY", flush=True)
    while True:
        dist.all_reduce(torch.ones(1))
        if rank == 1:
            append(*((store.index, store.rows) if HEALTHY else (store.rows, store.index)))


main()

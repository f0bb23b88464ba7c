# SPDX-License-Identifier: Apache-2.0
"""Two threads take two locks in opposite order. Each lock is taken inside a context manager of Shelf, so the order is only in Library."""
import contextlib
import sys
import threading
import time

import torch
import torch.distributed as dist

HEALTHY = "--healthy" in sys.argv


class Shelf:
    def __init__(self):
        self.mutex = threading.RLock()
        self.books = []

    @contextlib.contextmanager
    def opened(self):
        with self.mutex:
            yield self.books


class Library:
    def __init__(self):
        self.novels, self.atlases = Shelf(), Shelf()

    def lend(self):
        with self.novels.opened() as novels:
            time.sleep(0.01)
            with self.atlases.opened():  # CULPRIT
                novels.append(1)

    def inspect(self):
        first, second = (self.novels, self.atlases) if HEALTHY else (self.atlases, self.novels)
        while True:
            with first.opened():
                time.sleep(0.01)
                with second.opened():  # CULPRIT
                    pass
            time.sleep(0.01)


def main():
    dist.init_process_group("gloo")
    library = Library()
    if dist.get_rank() == 0:
        threading.Thread(target=library.inspect, daemon=True).start()
    print("READY", flush=True)
    while True:
        dist.all_reduce(torch.ones(1))
        library.lend()


main()

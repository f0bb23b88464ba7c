# SPDX-License-Identifier: Apache-2.0
"""Two objects of two classes have a `self.lock` each; two threads of rank 0 take them in opposite order."""
import sys
import threading
import time

import torch
import torch.distributed as dist


class Buffer:
    def __init__(self):
        self.lock = threading.Lock()
        self.items = []

    def add(self, item, stats):
        with self.lock:
            self.items.append(item)
            time.sleep(0.3)
            stats.on_add()

    def size(self):
        with self.lock:  # CULPRIT
            return len(self.items)


class Stats:
    def __init__(self, buffer):
        self.lock = threading.Lock()
        self.buffer = buffer
        self.adds = 0

    def on_add(self):
        with self.lock:  # CULPRIT
            self.adds += 1

    def snapshot(self, healthy):
        if healthy:
            return self.buffer.size()
        with self.lock:
            time.sleep(0.3)
            return self.buffer.size()


def act(buffer, stats):
    while True:
        buffer.add(1, stats)
        time.sleep(0.01)


def main():
    dist.init_process_group("gloo")
    healthy = "--healthy" in sys.argv
    buffer = Buffer()
    stats = Stats(buffer)
    if dist.get_rank() == 0:
        threading.Thread(target=act, args=(buffer, stats), daemon=True).start()
    print("READY", flush=True)
    while True:
        size = stats.snapshot(healthy) if dist.get_rank() == 0 else 0
        dist.all_reduce(torch.tensor([float(size)]))
        time.sleep(0.02)


main()

# SPDX-License-Identifier: Apache-2.0
"""A full queue under two names: who adds holds the lock that the reader, another class, needs next. The reader's dict has the queue's other name."""
import queue
import sys
import threading
import time

import torch
import torch.distributed as dist

healthy = "--healthy" in sys.argv
mutex = threading.Lock()


class Writer:
    def __init__(self, box):
        self.incoming = box

    def add(self, item):
        if healthy:
            self.incoming.put(item)
            return
        with mutex:
            self.incoming.put(item)  # CULPRIT


class Reader:
    def __init__(self, todo, slow):
        self.todo = todo
        self.incoming = {}
        self.slow = slow
        threading.Thread(target=self.index, daemon=True).start()

    def index(self):
        while True:
            item = self.todo.get()
            if self.slow:
                time.sleep(0.05)
            with mutex:
                self.incoming[item] = self.incoming.get(item, 0) + 1


def main():
    dist.init_process_group("gloo")
    slow = dist.get_rank() == 1
    shared = queue.Queue(maxsize=4 if slow else 0)  # without a bound, a busy machine cannot fill it
    writer = Writer(shared)
    reader = Reader(shared, slow)
    print("READY", flush=True)
    while reader:
        for i in range(6):
            writer.add(i)
        dist.all_reduce(torch.ones(1))


main()

# SPDX-License-Identifier: Apache-2.0
"""The loop waits for room in a full queue while it holds the lock that the queue's only reader needs next."""
import queue
import sys
import threading
import time

import torch
import torch.distributed as dist

healthy = "--healthy" in sys.argv


class Replay:
    def __init__(self, slow):
        self.mutex = threading.Lock()
        self.incoming = queue.Queue(maxsize=4 if slow else 0)  # without a bound, a busy machine cannot fill it
        self.count = 0
        self.slow = slow
        threading.Thread(target=self.index, daemon=True).start()

    def add(self, item):
        if healthy:
            self.incoming.put(item)
            return
        with self.mutex:
            self.incoming.put(item)  # CULPRIT

    def index(self):
        while True:
            self.incoming.get()
            if self.slow:
                time.sleep(0.05)
            with self.mutex:
                self.count += 1


def main():
    dist.init_process_group("gloo")
    replay = Replay(slow=dist.get_rank() == 1)
    print("READY", flush=True)
    while True:
        for i in range(6):
            replay.add(i)
        dist.all_reduce(torch.ones(1))


main()

# SPDX-License-Identifier: Apache-2.0
"""A thread drops an item that is too old and does not call task_done(): its rank waits in queue.join() forever."""
import queue
import sys
import threading
import time

import torch
import torch.distributed as dist

HEALTHY = "--healthy" in sys.argv


class Writer:
    def __init__(self, newest):
        self.newest = newest
        self.items = queue.Queue()
        threading.Thread(target=self.work, daemon=True).start()

    def accepts(self, step):
        return step < self.newest

    def work(self):
        while True:
            step = self.items.get()
            if not self.accepts(step):  # CULPRIT
                continue  # CULPRIT
            time.sleep(0.001)
            self.items.task_done()

    def flush(self, step):
        self.items.put(step)
        self.items.join()  # CULPRIT


def main():
    dist.init_process_group("gloo")
    writer = Writer(newest=20 if dist.get_rank() == 1 and not HEALTHY else 10**9)
    print("READY", flush=True)
    for step in range(10**9):
        dist.all_reduce(torch.ones(4))
        writer.flush(step)
        time.sleep(0.02)


if __name__ == "__main__":
    main()

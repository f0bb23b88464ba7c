# SPDX-License-Identifier: Apache-2.0
"""Rank 0 polls until its uploader thread has sent everything; the others wait in a barrier, longer than the hang timeout."""
import collections
import threading
import time

import torch.distributed as dist


class Uploader(threading.Thread):
    def __init__(self):
        super().__init__(daemon=True)
        self.todo = collections.deque()

    def run(self):
        while True:
            if self.todo:
                time.sleep(0.6)  # a round trip
                self.todo.popleft()
            else:
                time.sleep(0.1)

    def drain(self):
        while self.todo:
            time.sleep(3)


def main():
    dist.init_process_group("gloo")
    uploader = Uploader()
    uploader.start()
    print("READY", flush=True)
    for _ in range(2):
        if dist.get_rank() == 0:
            uploader.todo.extend(range(20))
            uploader.drain()
        dist.barrier()


main()

# SPDX-License-Identifier: Apache-2.0
"""A thread that fills a queue ends with an exception; its rank waits at the queue forever."""
import queue
import sys
import threading
import time

import torch
import torch.distributed as dist


def decode(number, bad):
    return 1 / (number - bad)  # CULPRIT


def feed(items, bad):
    for number in range(100000):
        items.put(decode(number, bad))


def main():
    dist.init_process_group("gloo")
    bad = 26 if dist.get_rank() == 1 and "--healthy" not in sys.argv else -1
    items = queue.Queue(maxsize=4)
    threading.Thread(target=feed, args=(items, bad), daemon=True).start()
    print("READY", flush=True)
    while True:
        dist.all_reduce(torch.tensor([items.get()]))
        time.sleep(0.02)


main()

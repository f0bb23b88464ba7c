# SPDX-License-Identifier: Apache-2.0
"""Both ranks are done, but the program that started them joins a thread that waits for an item that is never sent."""
import os
import queue
import subprocess
import sys
import threading
import time

import torch
import torch.distributed as dist


def train():
    dist.init_process_group("gloo")
    for _ in range(20):
        dist.all_reduce(torch.ones(4))
    dist.destroy_process_group()


def export(metrics):
    if "--healthy" in sys.argv:
        for _ in range(200):
            time.sleep(0.3)  # it sends its items one by one, and then ends
        return
    while True:
        metrics.get()  # CULPRIT


def main():
    metrics = queue.Queue()
    exporter = threading.Thread(target=export, args=(metrics,), name="exporter")
    exporter.start()
    environment = dict(os.environ, MASTER_ADDR="127.0.0.1", MASTER_PORT=os.environ["ZOO_PORT"], WORLD_SIZE="2")
    ranks = [subprocess.Popen([sys.executable, __file__, "--rank"], env={**environment, "RANK": str(rank)}) for rank in range(2)]
    for rank in ranks:
        rank.wait()
        metrics.put(rank.returncode)
    print("READY", flush=True)
    exporter.join()


train() if "--rank" in sys.argv else main()

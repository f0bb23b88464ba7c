# SPDX-License-Identifier: Apache-2.0
"""The ranks are done; their launcher waits at its end for a Timer that fires once and for a thread that counts its iterations."""
import os
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


def upload(rounds=0):
    while rounds < 50:
        time.sleep(0.5)
        rounds += 1


def main():
    environment = dict(os.environ, MASTER_ADDR="127.0.0.1", MASTER_PORT=os.environ["ZOO_PORT"], WORLD_SIZE="2")
    ranks = [subprocess.Popen([sys.executable, __file__, "--rank"], env={**environment, "RANK": str(rank)}) for rank in range(2)]
    for rank in ranks:
        rank.wait()
    print("READY", flush=True)
    threading.Timer(24, print, args=("notified",)).start()
    threading.Thread(target=upload).start()


train() if "--rank" in sys.argv else main()

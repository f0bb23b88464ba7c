# SPDX-License-Identifier: Apache-2.0
"""Rank 1 is killed by the kernel before it publishes its address; the others wait for it in the store. The launcher is a script
that only waits for the first rank."""
import os
import signal
import subprocess
import sys
import time
from datetime import timedelta

import torch.distributed as dist


def exchange_addresses(store, rank, world):
    if rank == 1 and "--healthy" not in sys.argv:
        os.kill(os.getpid(), signal.SIGKILL)  # CULPRIT
    store.set(f"address/{rank}", "here")
    return [store.get(f"address/{other}") for other in range(world)]  # CULPRIT


def rank_main():
    store = dist.TCPStore("127.0.0.1", int(os.environ["MASTER_PORT"]), is_master=os.environ["RANK"] == "0",
                          timeout=timedelta(hours=1), wait_for_workers=False)
    print("READY", flush=True)
    exchange_addresses(store, int(os.environ["RANK"]), 3)
    while True:
        time.sleep(0.05)


if "RANK" in os.environ:
    rank_main()
else:
    ranks = [subprocess.Popen([sys.executable, *sys.argv],
                              env={**os.environ, "RANK": str(r), "WORLD_SIZE": "3", "MASTER_ADDR": "127.0.0.1",
                                   "MASTER_PORT": os.environ["ZOO_PORT"]}) for r in range(3)]
    ranks[0].wait()

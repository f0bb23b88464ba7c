# SPDX-License-Identifier: Apache-2.0
"""Training is over, but rank 1 does not exit: a non-daemon thread still polls. The launcher waits for it."""
import sys
import threading
import time

import torch
import torch.distributed as dist


def heartbeat():
    while True:
        time.sleep(0.2)  # CULPRIT


def main():
    dist.init_process_group("gloo")
    if dist.get_rank() == 1 and "--healthy" not in sys.argv:
        threading.Thread(target=heartbeat).start()
    for _ in range(5):
        dist.all_reduce(torch.ones(4))
    print("READY", flush=True)
    while "--healthy" in sys.argv:
        dist.barrier()
        time.sleep(0.02)
    dist.destroy_process_group()


main()

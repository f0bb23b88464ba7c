# SPDX-License-Identifier: Apache-2.0
"""One rank waits in its own code for something that never comes; the others are in all_reduce.
Re-enacts: a rank polling for a configuration in a sleep loop."""
import sys
import time

import torch
import torch.distributed as dist


def wait_for_config():
    while True:
        time.sleep(0.5)  # CULPRIT


def main():
    dist.init_process_group("gloo")
    grads = torch.ones(1000)
    for step in range(100000):
        if step == 3:
            print("READY", flush=True)
            if dist.get_rank() == 1 and "--healthy" not in sys.argv:
                wait_for_config()
        dist.all_reduce(grads)
        time.sleep(0.02)


main()

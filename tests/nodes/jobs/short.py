# SPDX-License-Identifier: Apache-2.0
"""A healthy job that ends by itself; every rank says so."""
import time

import torch
import torch.distributed as dist


def main():
    dist.init_process_group("gloo")
    for step in range(200):
        dist.all_reduce(torch.ones(16))
        if step == 3:
            print("READY", flush=True)
        time.sleep(0.03)
    dist.barrier()
    print("DONE", flush=True)
    dist.destroy_process_group()


main()

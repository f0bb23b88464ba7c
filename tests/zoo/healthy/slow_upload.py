# SPDX-License-Identifier: Apache-2.0
"""Rank 0 uploads its checkpoint piece by piece, pausing between the pieces; the others wait in a barrier, longer than the hang timeout."""
import time

import torch.distributed as dist


def upload(pieces):
    for _ in range(pieces):
        time.sleep(1)


def main():
    dist.init_process_group("gloo")
    print("READY", flush=True)
    for _ in range(3):
        if dist.get_rank() == 0:
            upload(11)
        dist.barrier()


main()

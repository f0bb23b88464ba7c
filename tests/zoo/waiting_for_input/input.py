# SPDX-License-Identifier: Apache-2.0
"""Rank 0 asks a question on its terminal, where no one sees it."""
import sys
import time

import torch.distributed as dist


def confirm_overwrite():
    return input("overwrite the run? ")  # CULPRIT


def main():
    dist.init_process_group("gloo")
    print("READY", flush=True)
    if dist.get_rank() == 0 and "--healthy" not in sys.argv:
        confirm_overwrite()
    while True:
        dist.barrier()
        time.sleep(0.02)


main()

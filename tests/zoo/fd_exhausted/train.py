# SPDX-License-Identifier: Apache-2.0
"""Rank 1 keeps every shard of its index open and runs out of file descriptors."""
import resource
import sys

import torch.distributed as dist


def open_shards(count):
    return [open("/dev/null") for _ in range(count)]  # CULPRIT


def main():
    dist.init_process_group("gloo")
    dist.barrier()
    if dist.get_rank() == 1:
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
        open_shards(4 if "--healthy" in sys.argv else 100)
    dist.barrier()
    dist.destroy_process_group()


main()

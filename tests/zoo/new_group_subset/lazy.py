# SPDX-License-Identifier: Apache-2.0
"""A group is made by the first rank that asks for it, and some ranks never ask; all reach the next new_group with different numbers."""
import functools
import sys
import time

import torch
import torch.distributed as dist


class Groups:
    @functools.cached_property
    def experts(self):
        return dist.new_group([0, 2])  # CULPRIT

    @functools.cached_property
    def everybody(self):
        return dist.new_group()


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    groups = Groups()
    if "--healthy" in sys.argv:
        groups.experts
    dist.barrier()
    print("READY", flush=True)
    expert = torch.ones(1) if rank % 2 == 0 else None
    while True:
        if expert is not None:
            dist.all_reduce(expert, group=groups.experts)
        dist.barrier()
        dist.all_reduce(torch.ones(1), group=groups.everybody)
        time.sleep(0.02)


main()

# SPDX-License-Identifier: Apache-2.0
"""Each task has a metric, kept by the name of the task since it first came; one kind of metric is reduced, the other gathered.
Re-enacts: a multi-task evaluation that goes over its metrics in the order in which the rank met their tasks."""
import sys
import time

import torch
import torch.distributed as dist


class Mean:
    def merge(self, value):
        dist.all_reduce(value)


class Spread:
    def merge(self, value):
        every = [torch.empty_like(value) for _ in range(dist.get_world_size())]
        dist.all_gather(every, value)


KINDS = {"translate": Mean, "rank": Spread, "tag": Mean}


class Board:
    def __init__(self, listing):
        self.metrics, self.listing = {}, listing

    def note(self, task):
        if task not in self.metrics:
            self.metrics[task] = KINDS[task]()

    def close(self):
        for task in self.listing(self.metrics):  # CULPRIT
            self.metrics[task].merge(torch.ones(4))


def main():
    dist.init_process_group("gloo")
    listing = sorted if "--healthy" in sys.argv else list
    print("READY", flush=True)
    draw = torch.Generator().manual_seed(dist.get_rank())
    tasks = sorted(KINDS)
    while True:
        board = Board(listing)
        for _ in range(40):
            board.note(tasks[int(torch.randint(len(tasks), (1,), generator=draw))])
        board.close()
        time.sleep(0.01)


main()

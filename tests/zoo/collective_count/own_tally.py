# SPDX-License-Identifier: Apache-2.0
"""A tally is a dict by its class and reduces itself, one collective for each of its own keys; the keys depend on what a rank's batch had."""
import sys
import time

import torch
import torch.distributed as dist


class Tally(dict):
    def __call__(self):
        for label in self:
            number = torch.tensor([float(self[label])])
            dist.all_reduce(number)  # CULPRIT
            self[label] = number.item()
        return self


def labels_of(batch):
    return ["cars", "bikes"] if batch % 50 == 30 else ["cars", "bikes", "trams"]


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    print("READY", flush=True)
    for step in range(10**6):
        batch = step if rank == 2 or "--healthy" in sys.argv else 0
        seen = Tally((label, 1) for label in labels_of(batch))()
        dist.broadcast(torch.tensor([seen["cars"]]), src=0)  # CULPRIT
        time.sleep(0.01)


main()

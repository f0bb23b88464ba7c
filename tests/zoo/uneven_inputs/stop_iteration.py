# SPDX-License-Identifier: Apache-2.0
"""A script without functions asks its reader for each batch and ends at StopIteration; rank 1 has fewer shards and is already saving."""
import sys
import time

import torch
import torch.distributed as dist


class Reader:
    def __init__(self, batches):
        self.left = batches

    def __next__(self):
        if self.left == 0:
            raise StopIteration
        self.left -= 1
        return torch.ones(4, 8)


def save(model):
    dist.barrier()  # CULPRIT
    if dist.get_rank() == 0:
        model.state_dict()
    dist.barrier()


if __name__ == "__main__":
    dist.init_process_group("gloo")
    model = torch.nn.Linear(8, 2)
    stream = Reader(100000 if "--healthy" in sys.argv else 40 if dist.get_rank() == 0 else 36)
    print("READY", flush=True)
    while True:
        try:
            batch = next(stream)
        except StopIteration:
            break
        time.sleep(0.01)
        model.zero_grad()
        model(batch).sum().backward()
        dist.all_reduce(torch.cat([p.grad.flatten() for p in model.parameters()]))
    save(model)  # CULPRIT
    dist.destroy_process_group()

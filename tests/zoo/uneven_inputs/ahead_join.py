# SPDX-License-Identifier: Apache-2.0
"""Healthy: the ranks have different numbers of batches, and Join takes part for ranks that have finished."""
import time

import torch
import torch.distributed as dist
from torch.distributed.algorithms.join import Join
from torch.nn.parallel import DistributedDataParallel


def main():
    dist.init_process_group("gloo")
    model = DistributedDataParallel(torch.nn.Linear(4, 1))
    batches = torch.ones(120 if dist.get_rank() == 0 else 110, 4)
    for epoch in range(3):
        with Join([model]):
            for step, batch in enumerate(batches):
                model(batch).sum().backward()
                if epoch == 0 and step == 2:
                    print("READY", flush=True)
                time.sleep(0.1)


main()

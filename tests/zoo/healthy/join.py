# SPDX-License-Identifier: Apache-2.0
"""Uneven inputs under Join: ranks that are done take part as shadows."""
import sys
import time

import torch
import torch.distributed as dist
from torch.distributed.algorithms.join import Join
from torch.nn.parallel import DistributedDataParallel as DDP


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    model = DDP(torch.nn.Linear(4, 1))
    opt = torch.optim.SGD(model.parameters(), 0.01)
    print("READY", flush=True)
    while True:
        with Join([model]):
            for _ in range(20 + 10 * rank):
                loss = model(torch.ones(2, 4)).sum()
                opt.zero_grad()
                loss.backward()
                opt.step()
                time.sleep(0.05)


main()

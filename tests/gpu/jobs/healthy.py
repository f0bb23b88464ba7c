# SPDX-License-Identifier: Apache-2.0
"""Nothing is wrong: DDP with a slow rank, gradient accumulation, a metric on a second group and a checkpoint on rank 0."""
# EXPECT {"kind": "healthy", "launch": "torchrun", "ranks": 3, "culprits": [], "healthy_only": true}
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from one_gpu import begin, device, model, steps


def main():
    rank = begin()
    metrics = dist.new_group()
    network = DistributedDataParallel(model())
    optimizer = torch.optim.SGD(network.parameters(), lr=1e-3)
    for step in steps():
        with network.no_sync():
            network(torch.ones(8, 64, device=device)).sum().backward()
        time.sleep(0.1 if rank == 1 else 0)
        loss = network(torch.ones(8, 64, device=device)).sum()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        dist.all_reduce(loss.detach(), group=metrics)
        if step % 10 == 0:
            if rank == 0:
                torch.save(network.state_dict(), "/dev/null")
            dist.barrier()
    dist.destroy_process_group()


main()

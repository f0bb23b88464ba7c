# SPDX-License-Identifier: Apache-2.0
"""One hook of a list skips its collective if a rank has nothing to report; that rank is in the next epoch's training."""
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

HEALTHY = "--healthy" in sys.argv


class Hook:
    wants_samples = False

    def after_epoch(self, samples):
        if self.wants_samples and not samples:  # CULPRIT
            return None
        return self.tell(samples)


class Line(Hook):
    def tell(self, samples):
        print(len(samples), flush=True)


class Hardest(Hook):
    wants_samples = True

    def tell(self, samples):
        dist.all_gather_object([None] * dist.get_world_size(), samples)  # CULPRIT


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    model = DistributedDataParallel(torch.nn.Linear(8, 2))
    hooks = [Line(), Hardest()]
    print("READY", flush=True)
    for epoch in range(10**6 if HEALTHY else 20):
        samples = []
        for x in torch.randn(5, 4, 8):
            model(x).sum().backward()  # CULPRIT
            if epoch != 5 or (rank != 0 and not HEALTHY):
                samples.append(epoch)
        for hook in hooks:
            hook.after_epoch(samples)
        time.sleep(0.05)
    dist.barrier()
    dist.destroy_process_group()


main()

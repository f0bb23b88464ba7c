# SPDX-License-Identifier: Apache-2.0
"""Rank 0 waits in a barrier inside the checkpoint function that only rank 0 calls; the others are in the next backward.
Re-enacts: save_checkpoint with a barrier, called under is_main_process."""
import os
import sys
import tempfile
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


class Trainer:
    def __init__(self):
        self.model = DistributedDataParallel(torch.nn.Linear(8, 8))
        self.is_main_process = dist.get_rank() == 0
        self.path = os.path.join(tempfile.gettempdir(), f"zoo-{os.getpid()}.pt")

    def save_checkpoint(self):
        torch.save(self.model.module.state_dict(), self.path)
        dist.barrier()  # CULPRIT
        os.unlink(self.path)

    def step(self):
        self.model(torch.ones(4, 8)).square().mean().backward()

    def fit(self):
        for step in range(100000):
            self.step()
            if step == 4:
                print("READY", flush=True)
            if step % 5 == 4:
                if "--healthy" in sys.argv:
                    self.save_checkpoint()
                elif self.is_main_process:
                    self.save_checkpoint()
            time.sleep(0.01)


dist.init_process_group("gloo")
Trainer().fit()

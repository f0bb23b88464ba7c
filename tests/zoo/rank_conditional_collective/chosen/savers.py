# SPDX-License-Identifier: Apache-2.0
"""Who writes checkpoints."""
import torch.distributed as dist


class Saver:
    def __init__(self, folder):
        self.folder = folder
        self.saved = 0

    def save(self, state):
        self.saved += 1
        dist.barrier()  # CULPRIT


def make_saver(number, everywhere):
    if number and not everywhere:
        return None
    return Saver("checkpoints")

# SPDX-License-Identifier: Apache-2.0
"""What ranks do at a step, by their role."""
import torch
import torch.distributed as dist


class Plain:
    shares = False

    def advance(self, weights, count):
        dist.all_reduce(weights)
        if count % 20 == 19:
            self.close(weights)

    def close(self, weights):
        if self.shares:
            self.share(weights)

    def share(self, weights):
        pieces = [torch.empty_like(weights) for _ in range(dist.get_world_size())]
        dist.all_gather(pieces, weights)


class Archivist(Plain):
    def close(self, weights):
        pieces = [torch.empty_like(weights) for _ in range(dist.get_world_size())]
        dist.all_gather(pieces, weights)  # CULPRIT
        self.kept = pieces


CLASSES = {"archive": Archivist, "plain": Plain}


def part_for(number, everywhere):
    role = "archive" if number == 0 else "plain"
    part = CLASSES[role]()
    part.shares = everywhere
    return part

# SPDX-License-Identifier: Apache-2.0
"""Tensor-parallel decoding whose reductions are kernels over symmetric memory: rank 1 draws the end of the sequence first."""
# EXPECT {"kind": "divergent-branch", "launch": "torchrun", "ranks": 2, "culprits": [1], "also": ["generate-length", "uneven-inputs"], "functions": ["Decoder.generate", "main"], "gloo": []}
import itertools
import os
import sys

os.environ.setdefault("TORCH_SYMM_MEM_ALLOW_OVERLAPPING_DEVICES", "1")  # all ranks share one GPU

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
import torch.distributed._symmetric_memory as symmetric  # noqa: E402

from one_gpu import begin, device, model, steps  # noqa: E402

END = 3


class Decoder:
    def __init__(self):
        self.network = model()
        self.shared = symmetric.empty(1024, device=device, dtype=torch.bfloat16)
        symmetric.rendezvous(self.shared, dist.group.WORLD.group_name)

    def logits(self, token):
        out = self.network(torch.full((1, 64), float(token), device=device))
        self.shared.fill_(float(out.sum()))
        return torch.ops.symm_mem.one_shot_all_reduce(self.shared, "sum", dist.group.WORLD.group_name)

    def generate(self, generator, longest=12):
        tokens = [0]
        while tokens[-1] != END and len(tokens) < longest:  # CULPRIT
            self.logits(tokens[-1])
            tokens.append(int(torch.randint(0, 32, (1,), generator=generator).item()))
        return tokens


def main():
    rank = begin()
    decoder = Decoder()
    for step in itertools.islice(steps(), 12):
        own = 1 - rank if step > 3 and "--healthy" not in sys.argv else 0
        with torch.no_grad():
            made = decoder.generate(torch.Generator().manual_seed(100 * step + own))
        lengths = torch.full((1024,), float(len(made)), device=device)
        dist.all_reduce(lengths)
        lengths.max().item()
    dist.destroy_process_group()


main()

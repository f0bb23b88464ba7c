# SPDX-License-Identifier: Apache-2.0
"""Tensor-parallel decoding in which each rank samples with its own random state: rank 1 draws the end of the sequence first and returns,
and the other waits in the reduction of the next token."""
# EXPECT {"kind": "generate-length", "launch": "torchrun", "ranks": 2, "culprits": [1], "culprits_also": [[]], "also": ["divergent-branch", "uneven-inputs", "mismatched-shape", "collective-count"], "functions": ["generate", "main", "logits"], "gloo": ["run"]}
import sys

import torch
import torch.distributed as dist

from one_gpu import begin, device, model, steps

END = 3


def logits(network, token):
    out = network(torch.full((1, 64), float(token), device=device))
    dist.all_reduce(out)
    return out


def generate(network, generator, longest=64):
    tokens = [0]
    while tokens[-1] != END and len(tokens) < longest:  # CULPRIT
        logits(network, tokens[-1])
        tokens.append(int(torch.randint(0, 32, (1,), generator=generator).item()))
    return tokens


def main():
    rank = begin()
    network = model()
    for step in steps():
        own = 1 - rank if step > 3 and "--healthy" not in sys.argv else 0
        with torch.no_grad():
            made = generate(network, torch.Generator().manual_seed(100 * step + own))
        lengths = torch.full((1024,), float(len(made)), device=device)
        dist.all_reduce(lengths)
        lengths.max().item()
    dist.destroy_process_group()


main()

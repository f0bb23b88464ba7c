# SPDX-License-Identifier: Apache-2.0
"""Decoding with CUDA graphs: the collectives are in the graph, the plan comes over gloo. Rank 1 has nothing to decode in its own queue and
does not replay; it waits for the next plan while the others wait for their GPUs."""
# EXPECT {"kind": "divergent-branch", "launch": "torchrun", "ranks": 3, "culprits": [1], "also": ["rank-conditional-collective", "missing-rank", "extra-rank-in-collective"], "functions": ["main", "decode", "Decoder.decode"], "gloo": [], "nccl": ["run"]}
import sys

import torch
import torch.distributed as dist

from one_gpu import begin, device, model, steps


class Decoder:
    def __init__(self):
        self.network, self.batch = model(), torch.ones(8, 64, device=device)
        stream = torch.cuda.Stream()
        with torch.no_grad(), torch.cuda.stream(stream):
            self.forward()
        torch.cuda.synchronize()
        self.graph = torch.cuda.CUDAGraph()
        with torch.no_grad(), torch.cuda.graph(self.graph):
            self.out = self.forward()

    def forward(self):
        out = self.network(self.batch)
        dist.all_reduce(out)
        return out

    def decode(self, queue):
        if queue:  # CULPRIT
            self.graph.replay()
            return self.out.sum().item()
        return 0.0


def main():
    rank = begin()
    control = dist.new_group(backend="gloo")
    decoder = Decoder()
    for step in steps():
        plan = [list(range(step % 4 + 1))]
        dist.broadcast_object_list(plan, src=0, group=control)
        queue = [] if rank == 1 and step == 4 and "--healthy" not in sys.argv else plan[0]
        decoder.decode(queue)
    decoder.graph.reset()  # NCCL does not destroy a communicator of which a graph has captured calls
    dist.destroy_process_group()


main()

# SPDX-License-Identifier: Apache-2.0
# EXPECT {"launch": "torchrun", "ranks": 3, "culprits": [0, 1, 2]}
"""Every parameter is broadcast by the rank that owns it, in the order of a set: the n-th broadcast has another root on each rank.
Re-enacts: a sharded optimizer that goes over the names of its shards as a set."""
import sys
import time

import torch
import torch.distributed as dist

LAYERS = [f"layer{i}.weight" for i in range(12)]


class Shards:
    def __init__(self, names, world_size):
        self.owner = {name: i % world_size for i, name in enumerate(names)}
        self.data = {name: torch.ones(4) for name in names}
        self.dirty = {name for name in names if not name.endswith("bias")}

    def publish(self, name):
        dist.broadcast(self.data[name], src=self.owner[name])

    def synchronize(self, healthy):
        if healthy:
            for name in sorted(self.dirty):
                self.publish(name)
        else:
            for name in self.dirty:  # CULPRIT
                self.publish(name)


def main():
    dist.init_process_group("gloo")
    shards = Shards(LAYERS, dist.get_world_size())
    print("READY", flush=True)
    while True:
        shards.synchronize("--healthy" in sys.argv)
        time.sleep(0.01)


main()

# SPDX-License-Identifier: Apache-2.0
"""A dataset keeps 3 million captions in a list, and four forked workers read them: each read writes a reference count and so copies a page,
under a memory limit that has no room for four copies. The twin keeps the same bytes in one tensor, which is never written."""
# EXPECT {"launch": "command", "command": "rmdir /sys/fs/cgroup/memory/ddpzoo-* 2>/dev/null; (group=/sys/fs/cgroup/memory/ddpzoo-{port}; mkdir $group && echo 1600M > $group/memory.limit_in_bytes && sh -c 'echo $PPID' > $group/cgroup.procs && exec {python} train.py {healthy})", "ranks": 1, "culprits": [0], "location": false, "ready": 1, "needs": ["writable:/sys/fs/cgroup/memory"], "environment": {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0"}}
import sys
import time

import torch
from torch.utils.data import DataLoader, Dataset

CAPTIONS = 3_000_000


class Captions(Dataset):
    def __init__(self):
        if "--healthy" in sys.argv:
            self.lengths = torch.arange(CAPTIONS) % 7
            self.texts = torch.zeros(CAPTIONS, 64, dtype=torch.uint8)
        else:
            self.texts = [f"a picture of {number} things, taken somewhere" for number in range(CAPTIONS)]

    def __len__(self):
        return CAPTIONS

    def __getitem__(self, index):
        if "--healthy" in sys.argv:
            return int(self.lengths[index])
        return len(self.texts[index])  # CULPRIT


def main():
    loader = DataLoader(Captions(), batch_size=512, shuffle=True, num_workers=4)
    for step, lengths in enumerate(loader):
        lengths.float().mean()
        time.sleep(0.05)
        if step == 3:
            print("READY", flush=True)


main()

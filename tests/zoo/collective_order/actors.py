# SPDX-License-Identifier: Apache-2.0
"""Trainers and rollout workers share two groups, for weights and for samples. The trainers send weights every 4 steps, the workers wait
for them every 5: each kind of actor waits for the other in another group."""
import sys
import time

import torch
import torch.distributed as dist

TRAINERS, WORKERS = [0, 1], [2, 3]


class Links:
    def __init__(self):
        everybody = TRAINERS + WORKERS
        self.weights = dist.new_group(everybody, group_desc="weights")
        self.samples = dist.new_group(everybody, group_desc="samples")
        self.trainers, self.workers = dist.new_group(TRAINERS), dist.new_group(WORKERS)


class Trainer:
    def __init__(self, links):
        self.links, self.weight, self.batch = links, torch.ones(256), torch.zeros(64)

    def sync_weights(self):
        dist.all_reduce(self.weight, group=self.links.weights)  # CULPRIT
        self.norm = float(self.weight.norm())

    def loop(self, every):
        self.sync_weights()
        for count in range(1, 10**6):
            dist.all_reduce(self.batch, group=self.links.samples)  # CULPRIT
            self.mean = self.batch.mean().item()
            dist.all_reduce(self.weight, group=self.links.trainers)
            self.weight /= 4
            if count % every == 0:
                self.sync_weights()


class Worker:
    def __init__(self, links):
        self.links, self.weight, self.batch = links, torch.zeros(256), torch.zeros(64)

    def update_weights(self):
        dist.all_reduce(self.weight, group=self.links.weights)
        self.norm = float(self.weight.norm())
        self.weight.zero_()

    def generate(self):
        self.batch.fill_(1.0)
        dist.all_reduce(self.batch, group=self.links.workers)
        dist.all_reduce(self.batch, group=self.links.samples)  # CULPRIT
        self.mean = self.batch.mean().item()

    def loop(self, every):
        self.update_weights()
        for count in range(1, 10**6):
            self.generate()
            if count % every == 0:
                self.update_weights()
            time.sleep(0.005)


def main():
    dist.init_process_group("gloo")
    links = Links()
    trains = dist.get_rank() in TRAINERS
    actor = Trainer(links) if trains else Worker(links)
    print("READY", flush=True)
    actor.loop(5 if "--healthy" in sys.argv or not trains else 4)


main()

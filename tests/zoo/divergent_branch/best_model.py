# SPDX-License-Identifier: Apache-2.0
"""Transformers: save_strategy="best", and the metric draws from a random state that each rank has for itself."""
import random
import sys

import torch
import torch.distributed as dist
from transformers import Trainer, TrainingArguments

healthy = "--healthy" in sys.argv


class Resampled:
    """A score that rises with each evaluation, less the part of the samples that a draw leaves out."""

    def __init__(self, seed):
        self.draws = random.Random(seed)
        self.evaluations = 0

    def __call__(self, predicted):
        self.evaluations += 1
        if self.evaluations == 2 and dist.is_initialized():
            print("READY", flush=True)
        left_out = self.draws.random() ** 8
        return {"score": self.evaluations - 4 * left_out}


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)
        self.norm = torch.nn.BatchNorm1d(4)

    def forward(self, x, labels=None):
        out = self.layer(self.norm(x))
        return {"loss": (out - labels).square().mean(), "logits": out}


class Rows(torch.utils.data.Dataset):
    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        return {"x": torch.ones(4) * (i % 3), "labels": torch.zeros(1)}


def main():
    args = TrainingArguments("out", use_cpu=True, per_device_train_batch_size=4, num_train_epochs=200, learning_rate=1e-3, eval_strategy="steps",
                             eval_steps=5, save_strategy="best", metric_for_best_model="score", save_total_limit=1, report_to=[],
                             disable_tqdm=True, logging_steps=100000)
    Trainer(Net(), args, train_dataset=Rows(2000), eval_dataset=Rows(24), compute_metrics=Resampled(4 if healthy else 4 + args.process_index)).train()


if __name__ == "__main__":
    main()

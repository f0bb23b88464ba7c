# SPDX-License-Identifier: Apache-2.0
"""Transformers: a callback asks for an evaluation whenever this rank's own clock says so."""
import sys
import time

import torch
from transformers import Trainer, TrainerCallback, TrainingArguments

healthy = "--healthy" in sys.argv


class Steps:
    def __init__(self, count):
        self.count = count

    def due(self, step):
        return step % self.count == 0


class Seconds:
    def __init__(self, count):
        self.count, self.next = count, time.monotonic() + count

    def due(self, step):
        if time.monotonic() < self.next:
            return False
        self.next += self.count
        return True


class Paced(TrainerCallback):
    def __init__(self, pace):
        self.pace = pace

    def on_step_end(self, args, state, control, **named):
        if state.global_step == 3:
            print("READY", flush=True)
        control.should_evaluate = self.pace.due(state.global_step)  # CULPRIT


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)

    def forward(self, x, labels=None):
        out = self.layer(x)
        return {"loss": (out - labels).square().mean(), "logits": out}


class Rows(torch.utils.data.Dataset):
    def __init__(self, rows):
        self.rows = rows

    def __len__(self):
        return self.rows

    def __getitem__(self, i):
        return {"x": torch.ones(4), "labels": torch.zeros(1)}


def main():
    args = TrainingArguments("out", use_cpu=True, per_device_train_batch_size=4, num_train_epochs=50, learning_rate=1e-3, save_strategy="no",
                             report_to=[], disable_tqdm=True, logging_steps=100000)
    pace = Steps(40) if healthy else Seconds(1.5 + args.process_index)
    Trainer(Net(), args, train_dataset=Rows(20000), eval_dataset=Rows(64), callbacks=[Paced(pace)]).train()  # CULPRIT


if __name__ == "__main__":
    main()

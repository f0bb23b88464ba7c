# SPDX-License-Identifier: Apache-2.0
"""transformers' Trainer: train without a hang, then with one."""
import torch
from common import TIMEOUT, Network, data, healthy_half_is_over
from transformers import Trainer, TrainingArguments

from ddpdoctor.integrations.transformers import HangReport


class Model(torch.nn.Module):
    def __init__(self, hangs):
        super().__init__()
        self.network = Network(hangs)

    def forward(self, batch):
        return {"loss": self.network(batch).sum()}


def train(hangs, name):
    arguments = TrainingArguments(output_dir=f"logs/{name}", per_device_train_batch_size=1, num_train_epochs=1, report_to=[], save_strategy="no",
                                  disable_tqdm=True, use_cpu=True, ddp_backend="gloo", remove_unused_columns=False)
    Trainer(Model(hangs), arguments, train_dataset=data(), data_collator=lambda rows: {"batch": torch.stack([row[0] for row in rows])},
            callbacks=[HangReport(timeout=TIMEOUT)]).train()


train(False, "healthy")
healthy_half_is_over("logs")
train(True, "hung")

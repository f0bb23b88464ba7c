# SPDX-License-Identifier: Apache-2.0
"""Lightning: an iterable dataset has fewer batches on rank 1."""
import os
import sys
import time

import torch
import lightning as L
from lightning.pytorch.callbacks import Callback
from torch.utils.data import DataLoader, TensorDataset

healthy = "--healthy" in sys.argv


class Shard(torch.utils.data.IterableDataset):
    def __init__(self, rank):
        self.rank = rank

    def __iter__(self):
        n = 40 if self.rank == 0 or healthy else 30
        for i in range(n):
            yield torch.ones(4)


class Model(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Linear(4, 1)

    def training_step(self, batch, index):
        if index == 2:
            print("READY", flush=True)
        time.sleep(0.02)
        return self.net(batch).square().mean()

    def on_train_epoch_end(self):
        self.trainer.strategy.barrier()  # CULPRIT

    def train_dataloader(self):
        return DataLoader(Shard(self.trainer.global_rank), batch_size=1)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.01)


def main():
    trainer = L.Trainer(accelerator="cpu", devices=2, strategy="ddp", max_epochs=5000, logger=False, enable_checkpointing=False,
                        enable_progress_bar=False, enable_model_summary=False)
    trainer.fit(Model())  # CULPRIT


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Lightning: a callback's method under @rank_zero_only reduces over all ranks."""
import os
import sys
import time

import torch
import lightning as L
from lightning.pytorch.callbacks import Callback
from torch.utils.data import DataLoader, TensorDataset

healthy = "--healthy" in sys.argv
from lightning.pytorch.utilities import rank_zero_only


class Report(Callback):
    @rank_zero_only
    def summarize(self, trainer, value):
        total = trainer.strategy.reduce(torch.tensor(value), reduce_op="sum") if not healthy else value  # CULPRIT
        print("total", float(total), flush=True)

    def on_train_batch_end(self, trainer, module, outputs, batch, index):
        if index == 2:
            print("READY", flush=True)
        if index % 20 == 19:
            self.summarize(trainer, 1.0)
        time.sleep(0.02)


class Model(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Linear(4, 1)

    def training_step(self, batch, index):
        return self.net(batch[0]).square().mean()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.01)


def main():
    data = DataLoader(TensorDataset(torch.randn(4000, 4)), batch_size=2)
    trainer = L.Trainer(accelerator="cpu", devices=2, strategy="ddp", max_epochs=50, logger=False, enable_checkpointing=False,
                        enable_progress_bar=False, enable_model_summary=False, callbacks=[Report()])
    trainer.fit(Model(), data)


if __name__ == "__main__":
    main()

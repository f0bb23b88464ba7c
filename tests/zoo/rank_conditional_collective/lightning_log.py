# SPDX-License-Identifier: Apache-2.0
"""Lightning: rank 0 alone logs with sync_dist=True."""
import os
import sys
import time

import torch
import lightning as L
from lightning.pytorch.callbacks import Callback
from torch.utils.data import DataLoader, TensorDataset

healthy = "--healthy" in sys.argv


class Model(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Linear(4, 1)

    def training_step(self, batch, index):
        loss = self.net(batch[0]).square().mean()
        if index == 2:
            print("READY", flush=True)
        if index == 5 and self.trainer.global_rank == 0 and not healthy:
            self.log("loss", loss, sync_dist=True, on_step=True, on_epoch=False)  # CULPRIT
        time.sleep(0.02)
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.01)


def main():
    data = DataLoader(TensorDataset(torch.randn(4000, 4)), batch_size=2)
    trainer = L.Trainer(accelerator="cpu", devices=2, strategy="ddp", max_epochs=50, logger=False, enable_checkpointing=False,
                        enable_progress_bar=False, enable_model_summary=False, callbacks=[])
    trainer.fit(Model(), data)


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Lightning with ddp_spawn, logging with sync_dist on all ranks."""
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
        if index == 2:
            print("READY", flush=True)
        loss = self.net(batch[0]).square().mean()
        self.log("loss", loss, sync_dist=True)
        time.sleep(0.02)
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.01)


def main():
    data = DataLoader(TensorDataset(torch.randn(4000, 4)), batch_size=2)
    trainer = L.Trainer(accelerator="cpu", devices=2, strategy="ddp_spawn", max_epochs=50, logger=False, enable_checkpointing=False,
                        enable_progress_bar=False, enable_model_summary=False, callbacks=[])
    trainer.fit(Model(), data)


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Lightning's Trainer: fit without a hang, then fit with one."""
import lightning.pytorch as pl
import torch
from common import TIMEOUT, Network, data, healthy_half_is_over
from lightning.pytorch.loggers import CSVLogger

from ddpdoctor.integrations.lightning import HangReport


class Model(pl.LightningModule):
    def __init__(self, hangs):
        super().__init__()
        self.network = Network(hangs)

    def training_step(self, batch, index):
        return self.network(batch[0]).sum()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


def fit(hangs, name):
    trainer = pl.Trainer(accelerator="cpu", devices=2, strategy="ddp", max_epochs=1, logger=CSVLogger("logs", name=name), enable_progress_bar=False,
                         enable_checkpointing=False, enable_model_summary=False, callbacks=[HangReport(timeout=TIMEOUT)])
    trainer.fit(Model(hangs), torch.utils.data.DataLoader(data(), batch_size=1))


fit(False, "healthy")
healthy_half_is_over("logs")
fit(True, "hung")

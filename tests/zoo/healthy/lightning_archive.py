# SPDX-License-Identifier: Apache-2.0
"""Lightning: rank 0 packs the logs after an epoch by a pipeline of programs, which have its rank in their environment; it takes longer than the hang timeout."""
import subprocess
import sys

import torch
import lightning as L
from lightning.pytorch.callbacks import Callback
from lightning.pytorch.utilities import rank_zero_only
from torch.utils.data import DataLoader, TensorDataset

WORK = "import time; end = time.time() + 12\nwhile time.time() < end: sum(range(1000))"


class Archive(Callback):
    @rank_zero_only
    def on_train_epoch_end(self, trainer, module):
        print("READY", flush=True)
        subprocess.run(f"echo | {sys.executable} -c '{WORK}' | cat", shell=True, check=True)


class Model(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Linear(4, 1)

    def training_step(self, batch, index):
        return self.net(batch[0]).square().mean()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.01)


def main():
    data = DataLoader(TensorDataset(torch.randn(80, 4)), batch_size=8)
    trainer = L.Trainer(accelerator="cpu", devices=2, strategy="ddp", max_epochs=2, logger=False, enable_checkpointing=False,
                        enable_progress_bar=False, enable_model_summary=False, callbacks=[Archive()])
    trainer.fit(Model(), data)


if __name__ == "__main__":
    main()

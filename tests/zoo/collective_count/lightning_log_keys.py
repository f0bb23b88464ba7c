# SPDX-License-Identifier: Apache-2.0
"""Lightning: scores of each class are logged with sync_dist=True at the end of a validation, and one rank has one class more."""
import sys
import time

import torch
import lightning as L
from torch.utils.data import DataLoader, TensorDataset

healthy = "--healthy" in sys.argv


class Model(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Linear(4, 1)
        self.hits = {}

    def training_step(self, batch, index):
        time.sleep(0.02)
        return self.net(batch[0]).square().mean()

    def validation_step(self, batch, index):
        self.hits.setdefault("car", []).append(batch[0].mean())
        if self.current_epoch < 3 or healthy or self.trainer.global_rank == 1:
            self.hits.setdefault("tram", []).append(batch[0].std())

    def on_validation_epoch_end(self):
        scores = {f"acc/{name}": torch.stack(values).mean() for name, values in sorted(self.hits.items())}
        self.log_dict(scores, sync_dist=True)  # CULPRIT
        self.hits.clear()
        if self.current_epoch == 2:
            print("READY", flush=True)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.01)


def main():
    data = TensorDataset(torch.randn(48, 4))
    trainer = L.Trainer(accelerator="cpu", devices=2, strategy="ddp", max_epochs=400, logger=False, enable_checkpointing=False, num_sanity_val_steps=0,
                        enable_progress_bar=False, enable_model_summary=False)
    trainer.fit(Model(), DataLoader(data, batch_size=4), DataLoader(data, batch_size=8))


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Trainer(callbacks=[HangReport(timeout=300)]): a hang of fit, validate, test or predict is reported in the logger's folder."""
from typing import Any, Optional

try:
    from lightning.pytorch import Callback
except ImportError:
    from pytorch_lightning import Callback  # type: ignore[no-redef]

from ddpdoctor.integrations.steps import OnHang, StepWatch, checked


class HangReport(Callback):  # type: ignore[misc]
    """Reports a hang when no batch has finished for `timeout` seconds.

    folder   instead of the log folder of the trainer's first logger.
    on_hang  called as on_hang(report, folder of the report) instead of printing the report on stderr."""

    def __init__(self, timeout: float = 300.0, folder: Optional[str] = None, on_hang: Optional[OnHang] = None) -> None:
        super().__init__()
        self._timeout, self._folder, self._on_hang = checked(timeout), folder, on_hang
        self._watch: Optional[StepWatch] = None

    def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
        self._end()
        self._watch = StepWatch(self._timeout, self._folder or _log_folder(trainer), trainer.local_rank, self._on_hang)

    def teardown(self, trainer: Any, pl_module: Any, stage: str) -> None:
        self._end()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        self._end()

    def _beat(self, *_: Any, **__: Any) -> None:
        if self._watch is not None:
            self._watch.beat()

    on_train_batch_end = on_validation_batch_end = on_test_batch_end = on_predict_batch_end = _beat

    def _end(self) -> None:
        if self._watch is not None:
            self._watch.stop()
            self._watch = None


def _log_folder(trainer: Any) -> str:
    """Like trainer.log_dir, but without its broadcast: a callback that only some ranks have must not make a collective.

    Only global rank 0 knows the version of a run; if another rank reports, the folder is the parent."""
    logger = trainer.loggers[0] if trainer.loggers else None
    own = getattr(logger, "log_dir", None) if trainer.is_global_zero else None
    return str(own or getattr(logger, "save_dir", None) or trainer.default_root_dir)

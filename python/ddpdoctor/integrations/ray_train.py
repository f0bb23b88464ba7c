# SPDX-License-Identifier: Apache-2.0
"""with hang_report(timeout=300): in a train loop of Ray Train, reports a hang in the run's storage folder. Steps are those of torch
optimizers. Ray tells a worker its rank inside Python only; ddpdoctor reads it there."""
import os
from typing import Any, Optional

from ddpdoctor.integrations.steps import OnHang, OptimizerWatch


def _where(context: Any) -> str:
    """The run's folder if it is on this machine; a bucket is none, and ddpdoctor writes to no network."""
    try:
        storage = context.get_storage()
        path = os.path.join(storage.storage_fs_path, storage.experiment_dir_name)
    except Exception:  # noqa: BLE001 - another version of Ray: its context has no storage
        return "."
    return path if os.path.isabs(path) and os.path.isdir(storage.storage_fs_path) else "."


def hang_report(timeout: float = 300.0, folder: Optional[str] = None, on_hang: Optional[OnHang] = None) -> OptimizerWatch:
    """Call it in train_loop_per_worker, on every worker. Watches until the end of its `with` block, or stop(). A step is one of any torch
    optimizer, or a call of beat().

    folder   instead of the run's folder (storage_path/name); without a local one, the worker's current folder.
    on_hang  called as on_hang(report, folder of the report) instead of printing the report on stderr."""
    from ray import train

    context = train.get_context()
    return OptimizerWatch(timeout, folder or _where(context), context.get_local_rank(), on_hang)

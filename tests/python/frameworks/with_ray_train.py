# SPDX-License-Identifier: Apache-2.0
"""Ray Train: a loop without a hang, then one with it. Started by plain Python with a folder for Ray's own files: Ray starts the workers itself
(tests/nodes/ray_test.py)."""
import os
import sys
from pathlib import Path

import ray
from ray import train
from ray.train.torch import TorchConfig, TorchTrainer

HERE = str(Path(__file__).resolve().parent)


def once(hangs):
    import torch
    from common import TIMEOUT, Network, data

    from ddpdoctor.integrations.ray_train import hang_report
    model = train.torch.prepare_model(Network(hangs))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    rank = train.get_context().get_world_rank()
    with hang_report(timeout=TIMEOUT):
        for (batch,) in torch.utils.data.DataLoader(torch.utils.data.Subset(data(), range(rank, len(data()), 2))):
            model(batch).sum().backward()
            optimizer.step()
            optimizer.zero_grad()


def loop():
    sys.path.insert(0, HERE)
    from common import healthy_half_is_over
    once(False)
    healthy_half_is_over(HERE + "/logs")
    once(True)


print("STARTED", flush=True)
given = {name: os.environ[name] for name in ("PYTHONPATH", "DDPDOCTOR", "GLOO_SOCKET_IFNAME", "OMP_NUM_THREADS") if name in os.environ}
ray.init(num_cpus=2, include_dashboard=False, _temp_dir=sys.argv[1], object_store_memory=100 << 20, runtime_env={"env_vars": given})
TorchTrainer(loop, scaling_config=train.ScalingConfig(num_workers=2), torch_config=TorchConfig(backend="gloo"),
             run_config=train.RunConfig(name="hung", storage_path=HERE + "/logs")).fit()

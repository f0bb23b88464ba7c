# SPDX-License-Identifier: Apache-2.0
"""watchdog() in real ranks: a hang is reported once, a job that moves never."""
import json
import time

HUNG = """
import json, os, sys, time
import torch, torch.distributed as dist
import ddpdoctor

def tell(report):
    with open(f"hang-{os.environ['RANK']}-{time.monotonic_ns()}.json", "w") as file:
        json.dump({"kind": report.findings[0].kind, "culprits": report.findings[0].culprits, "text": report.text}, file)

def evaluate():
    dist.barrier()  # CULPRIT

dist.init_process_group("gloo")
rank = dist.get_rank()
ddpdoctor.watchdog(timeout=2, on_hang=tell)
for step in range(4):
    dist.all_reduce(torch.ones(4))
print("READY", flush=True)
if rank == 1:
    evaluate()
dist.all_reduce(torch.ones(4))
time.sleep(1000)
"""

MOVING = """
import sys, time
import torch, torch.distributed as dist
import ddpdoctor

dist.init_process_group("gloo")
with ddpdoctor.watchdog(timeout=1, on_hang=lambda report: print("REPORTED", report.text, flush=True)) as dog:
    for step in range(60):
        dist.all_reduce(torch.ones(4))
        time.sleep(0.1)
        if dist.get_rank() == 0:
            dog.beat()
    time.sleep(4)  # longer than the timeout, on every rank: no hang of this job
    dist.all_reduce(torch.ones(4))
dist.destroy_process_group()
print("DONE", flush=True)
"""


def until(condition, limit):
    end = time.monotonic() + limit
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.1)
    return False


def test_a_hang_is_reported_once_with_its_cause(launch, tmp_path):
    process = launch(HUNG)
    assert until(lambda: list(tmp_path.glob("hang-*.json")), 60), process.log.read_text()
    time.sleep(5)  # time for a second report, which must not appear
    told = list(tmp_path.glob("hang-*.json"))
    assert len(told) == 1, process.log.read_text()
    finding = json.loads(told[0].read_text())
    assert finding["kind"] == "rank-conditional-collective"
    assert finding["culprits"] == [1]
    assert "train.py" in finding["text"]


def test_a_job_that_moves_is_not_reported(launch):
    process = launch(MOVING)
    assert process.wait(90) == 0, process.log.read_text()
    said = process.log.read_text()
    assert said.count("DONE") == 2 and "REPORTED" not in said and "ddpdoctor watchdog" not in said

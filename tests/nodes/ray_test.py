# SPDX-License-Identifier: Apache-2.0
"""`attach` beside Ray itself: to the program that waits in ray.get, to the raylet, to one worker. Ranks are known inside Python only. The cluster
lives in a network namespace of its own. Skipped without $DDPDOCTOR, without ray and torch, and where no namespace can be made."""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

pytest.importorskip("ray")
pytest.importorskip("torch")

ROOT = Path(__file__).resolve().parents[2]
TOOL = os.environ.get("DDPDOCTOR", "")
ALONE = ["unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]


def can_be_alone():
    return shutil.which("unshare") and subprocess.run([*ALONE, "true"], capture_output=True).returncode == 0


pytestmark = [pytest.mark.skipif(not TOOL, reason="DDPDOCTOR names no ddpdoctor to ask"),
              pytest.mark.skipif(not can_be_alone(), reason="no network namespace can be made here")]

COMMON = """import os, socket, sys
import ray


def free():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def start(folder):
    ray.init(num_cpus=2, include_dashboard=False, _temp_dir=folder, object_store_memory=100 << 20,
             runtime_env={"env_vars": {"GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}})


def group(rank, size, port):
    import torch.distributed as dist
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=size)


"""

HUNG = COMMON + """from ray.util.placement_group import placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy


@ray.remote(num_cpus=0)
class Trainer:
    def setup(self, rank, size, port):
        self.rank, self.size = rank, size
        group(rank, size, port)

    def train(self):
        import torch, torch.distributed as dist
        data = torch.ones(4)
        for step in range(100):
            dist.all_reduce(data)
            if step == 5 and self.rank == 0:
                self.log_metrics(data)

    def log_metrics(self, data):
        import torch, torch.distributed as dist
        dist.all_gather([torch.zeros(4) for _ in range(self.size)], data)


start(sys.argv[1])
bundles = placement_group([{"CPU": 0.5}] * 3, strategy="PACK")
ray.get(bundles.ready())
port = free()
actors = [Trainer.options(scheduling_strategy=PlacementGroupSchedulingStrategy(bundles, i)).remote() for i in range(3)]
ray.get([actor.setup.remote(i, 3, port) for i, actor in enumerate(actors)])
waiting = [actor.train.remote() for actor in actors]
print("STARTED", flush=True)
ray.get(waiting)
"""

GROUPS = COMMON + """

class Worker:
    def setup(self, rank, port, sync_rank, sync_port):
        import torch.distributed as dist
        self.rank = rank
        group(rank, 2, port)
        store = dist.TCPStore("127.0.0.1", sync_port, 4, sync_rank == 0, wait_for_workers=False)
        self.sync = dist.ProcessGroupGloo(dist.PrefixStore("sync", store), sync_rank, 4)


@ray.remote(num_cpus=0)
class Actor(Worker):
    def update(self):
        if self.rank == 0:
            self.sync.barrier().wait()


@ray.remote(num_cpus=0)
class Rollout(Worker):
    def load_weights(self):
        self.sync.barrier().wait()


start(sys.argv[1])
ports = [free(), free()]
sync = free()
actors, rollouts = [Actor.remote() for _ in range(2)], [Rollout.remote() for _ in range(2)]
ray.get([one.setup.remote(i % 2, ports[i // 2], i, sync) for i, one in enumerate(actors + rollouts)])
waiting = [one.update.remote() for one in actors] + [one.load_weights.remote() for one in rollouts]
print("STARTED", flush=True)
ray.get(waiting)
"""


def below(pid):
    """All processes below this one, with their commands."""
    out = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            fields = Path(f"/proc/{name}/stat").read_text().rsplit(")", 1)[1].split()
            command = Path(f"/proc/{name}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except (OSError, IndexError):
            continue
        out[int(name)] = (int(fields[1]), command)
    known = {pid}
    while True:
        more = {one for one, (parent, _) in out.items() if parent in known} - known
        if not more:
            return {one: out[one][1] for one in known if one in out}
        known |= more


@pytest.fixture
def program():
    """Starts the program and waits until its workers are in their calls; ends all its processes."""
    folder = tempfile.mkdtemp(prefix="r", dir="/tmp")  # Ray's sockets allow no long names
    started = []

    def start(text):
        script = Path(folder) / "train.py"
        script.write_text(text)
        python = os.pathsep.join([str(ROOT / "python"), *filter(None, [os.environ.get("PYTHONPATH")])])
        environment = {**os.environ, "RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0", "HOME": folder, "PYTHONPATH": python,
                       "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
        process = subprocess.Popen([*ALONE, sys.executable, str(script), folder], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                   env=environment, stdin=subprocess.DEVNULL)
        started.append(process)
        for line in process.stdout:
            if "STARTED" in line:
                return process.pid
        raise AssertionError("the program ended before its workers hung")

    yield start
    for process in started:
        rest = below(process.pid)
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
        for pid in rest:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        process.stdout.close()
        process.wait()
    shutil.rmtree(folder, ignore_errors=True)


def asked(pid, folder, good, tries=20):
    """The report of `attach pid`, repeated until the workers have reached their calls."""
    for _ in range(tries):
        target = folder / f"{pid}.json"
        done = subprocess.run([TOOL, "attach", str(pid), "-o", str(target)], capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)
        report = json.loads(target.read_text()) if target.exists() else {}
        if good(report):
            return report
        time.sleep(0.5)
    raise AssertionError(f"attach {pid}: {done.returncode} {done.stdout[-2000:]} {done.stderr[-2000:]}")


def pids(driver, word):
    return sorted(pid for pid, command in below(driver).items() if command.split(" ")[0].endswith(word) or command.startswith(word))


def test_the_program_the_raylet_and_a_worker_lead_to_all_ranks(program, tmp_path):
    driver = program(HUNG)
    workers = pids(driver, "ray::Trainer")
    assert len(workers) == 3
    for pid in (driver, pids(driver, "/raylet")[0], workers[1]):
        report = asked(pid, tmp_path, lambda report: (report.get("findings") or [{}])[0].get("culprits") == [0])
        first = report["findings"][0]
        assert first["kind"] in ("divergent-branch", "rank-conditional-collective"), first
        assert first["waiting"] == [1, 2], first
        assert first["locations"][0]["function"].endswith("log_metrics"), first


def test_two_groups_of_workers_are_no_duplicate_ranks(program, tmp_path):
    driver = program(GROUPS)
    report = asked(driver, tmp_path, lambda report: bool(report.get("findings")))
    kinds = [finding["kind"] for finding in report["findings"]]
    assert "duplicate-rank" not in kinds and "environment-differs" not in kinds, kinds
    assert "reports Rollout" in json.dumps(report), report
    rollout = pids(driver, "ray::Rollout")[0]
    report = asked(rollout, tmp_path, lambda report: bool(report.get("findings")))
    assert "reports Actor" in json.dumps(report), report


def test_a_train_loop_reports_in_the_folder_of_its_run(program):
    """ddpdoctor.integrations.ray_train: a slow healthy half, about which nothing is reported, then a hang."""
    pytest.importorskip("ray.train.torch")
    frameworks = ROOT / "tests/python/frameworks"
    pid = program((frameworks / "with_ray_train.py").read_text())
    folder = Path(below(pid)[pid].split()[-1])
    shutil.copy(frameworks / "common.py", folder)
    end = time.monotonic() + 180
    while not (reports := list(folder.glob("logs/hung/ddpdoctor/*/report.json"))):
        assert time.monotonic() < end, list(folder.rglob("*.json"))
        time.sleep(0.5)
    assert len(reports) == 1, reports
    finding = json.loads(reports[0].read_text())["findings"][0]
    assert (finding["kind"], finding["culprits"], finding["waiting"]) == ("rank-conditional-collective", [1], [0])
    line = 1 + next(number for number, text in enumerate((frameworks / "common.py").read_text().splitlines()) if "# CULPRIT" in text)
    assert finding["locations"][0]["file"].endswith("common.py") and finding["locations"][0]["line"] == line

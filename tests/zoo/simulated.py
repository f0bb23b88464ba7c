# SPDX-License-Identifier: Apache-2.0
"""The zoo on the simulated device (tests/doubles/simulated_device) or on a real GPU (`--device cuda`, tests/gpu/real_device.py): unchanged
scripts as jobs of NCCL, whose hosts run ahead and spin in the driver. Each side is judged three times: under `run`, by `attach`, and from Python-only dumps of all ranks (as of `py-spy dump`) given to `report`.
`--keep DIR` keeps the recordings; judge_again.py judges them with a newer program, without the jobs.
`--mode bare` asks attach about jobs whose flight recorder is off: stacks and values are all there is.

In a case, `"simulated": "why not"` leaves it out, and `"simulated": {…}` says what is otherwise there than over gloo; `"pairs"` in it: NCCL
pairs the calls, which are of one size, and the job goes on with wrong numbers."""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from cases import HERE, cases, missing_need
from jobs import Job
from judge import problems

DOUBLE = HERE.parent / "doubles" / "simulated_device"
sys.path[:0] = [str(DOUBLE), str(HERE.parent / "gpu")]
import build  # noqa: E402
import device  # noqa: E402
import real_device  # noqa: E402

TOOL = os.environ.get("DDPDOCTOR", "ddpdoctor")
MODES = ("run", "attach", "stacks")
DEVICE = device  # or real_device
LIMIT = 85  # seconds after which the device ends a job
NO_RECORDER = {"TORCH_FR_BUFFER_SIZE": "0", "TORCH_NCCL_TRACE_BUFFER_SIZE": "0"}
SETTLE = 7  # a host waits 2 s for its first late call, and then runs ahead
PATIENCE = float(os.environ.get("ZOO_PATIENCE", "1"))  # a busy machine: how many times as long a job may take
CI = {"rank_conditional_collective/train.py", "uneven_inputs/train.py", "p2p_deadlock/both_receive.py", "divergent_branch/oom_skip.py", "healthy/barrier.py"}


def chosen(options):
    """(folder, case) that make collectives, with their differences on the device."""
    for folder, case in cases(options.names, False, "run"):
        script = HERE / folder / case.get("source", case["script"])
        label = f"{folder}/{case['script']}"
        other = case.get("simulated", {})
        if case["launch"] == "mpirun" or not script.exists() or (options.ci and label not in CI):
            continue
        if isinstance(other, str):
            print(f"skip {label}: {other}", flush=True)
        elif "torch.distributed" in script.read_text() or other:
            told = {**case, **other}
            if "command" in told:  # one that has its own modules keeps those of the device
                told["command"] = told["command"].replace("PYTHONPATH=", f"PYTHONPATH={DEVICE.SITE}:")
            yield folder, told


def ask_for_nccl(folder):
    """The program of a GPU says so; its lines stay where they are."""
    for script in folder.rglob("*.py"):
        text = script.read_text().replace('"gloo"', '"nccl"')
        script.write_text(text.replace('torch.device("cpu")', 'torch.device("cuda", 0)') if DEVICE is real_device else text)


def dump_of(process):
    """What `py-spy dump` would print for a process, from the stacks that ddpdoctor read."""
    lines = [f"Process {process['pid']}: {' '.join(process.get('command', []))}", f"Python v{sys.version.split()[0]} ({sys.executable})", ""]
    for thread in process.get("threads", []):
        python = [frame for frame in thread["frames"] if frame["language"] == "python"]
        if python:
            state = "active" if thread.get("state") == "R" else "idle"
            lines.append(f"Thread {thread['tid']} ({state}): \"{thread['name']}\"")
            lines += [f"    {frame['function']} ({short(frame.get('file', '<string>'))}:{frame.get('line', 1)})" for frame in python]
    return "\n".join([*lines, ""])


def short(file):
    """As py-spy does: from a folder of sys.path on."""
    for folder in ("/site-packages/", f"/python3.{sys.version_info.minor}/"):
        if folder in file:
            return file.split(folder, 1)[1]
    return Path(file).name


def report_on_dumps(job, report):
    """Reports on dumps of all ranks alone, in the job's own folder."""
    files = []
    for process in report["processes"]:
        if process.get("role") == "rank" and process.get("rank") is not None and process.get("threads"):
            file = job.folder / f"rank{process['rank']}.txt"
            file.write_text(dump_of(process))
            files.append(file.name)
    target = job.folder / "stacks.json"
    done = subprocess.run([TOOL, "report", *files, "-o", target.name], cwd=job.folder, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
    return json.loads(target.read_text()) if target.exists() else {"findings": []}, done.stdout + done.stderr


class Seen:
    """The results of one side of a case in one mode."""

    def __init__(self, wrong, report=None, text=""):
        self.wrong, self.report, self.text = wrong, report, text


def attach(folder, case, healthy, kept=None, recorder=True):
    gpu = DEVICE.Device(LIMIT * PATIENCE)
    more = gpu.environment if recorder else {**gpu.environment, **NO_RECORDER}
    job = Job(folder, case, healthy, prefix=("nice", "-n", "10"), more=more, prepare=ask_for_nccl)
    try:
        if not job.wait_ready(healthy, limit=40 * PATIENCE, least=SETTLE):
            lost = Seen([f"the job did not come up: {job.output()[-600:]}"])
            return {"attach": lost, "stacks": lost} if recorder else {"bare": lost}
        if not healthy and not case.get("healthy_only"):
            gpu.settle(limit=15)
        target = job.folder / "report.json"
        done = subprocess.run([TOOL, "attach", str(job.process.pid), "-o", str(target), "-o", str(job.folder / "job.ddpd")], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
        if done.returncode not in (0, 1):
            return {"attach" if recorder else "bare": Seen([f"attach ended with {done.returncode}: {done.stderr.strip()[:300]}"])}
        report = json.loads(target.read_text())
        ended = job.process.poll() is not None
        if not recorder:
            wrong = problems(folder, case, healthy, report, done.returncode, "stacks")
            return {"bare": Seen(["the job ended while it was observed"] if ended else wrong, report, done.stdout + done.stderr)}
        wrong = ["the job ended while it was observed"] if ended else problems(folder, case, healthy, report, done.returncode)
        stacks, text = report_on_dumps(job, report)
        return {"attach": Seen(wrong, report, done.stdout + done.stderr + "\n" + job.output()[-3000:]),
                "stacks": Seen(problems(folder, case, healthy, stacks, None, "stacks"), stacks, text)}
    finally:
        if kept:
            keep_evidence(kept, label_of(folder, case, healthy), job.folder)
        job.end()
        gpu.end()


def run(folder, case, healthy, kept=None):
    reports = Path(tempfile.mkdtemp(prefix="ddpzoo_report_"))
    gpu = DEVICE.Device(LIMIT * PATIENCE)
    job = Job(folder, case, healthy, more=gpu.environment, prepare=ask_for_nccl,
              prefix=("nice", "-n", "10", TOOL, "run", "--hang-timeout", "6", "--on-hang", "kill", "--always", "--report-dir", str(reports), "--"))
    try:
        limit = time.time() + PATIENCE * (35 if healthy or case.get("healthy_only") else 70)
        while job.process.poll() is None and time.time() < limit:
            time.sleep(0.2)
        ours = job.process.poll() is None
        if ours:
            job.process.send_signal(signal.SIGINT)
            job.process.wait(30)
        file = reports / "report.json"
        if not file.exists():
            return {"run": Seen([f"no report (exit {job.process.returncode})"], None, job.output())}
        report = json.loads(file.read_text())
        status = None if ours else job.process.returncode
        return {"run": Seen(problems(folder, case, healthy, report, status, "run"), report, job.output())}
    except subprocess.TimeoutExpired:
        return {"run": Seen(["ddpdoctor run did not end after SIGINT"], None, job.output())}
    finally:
        if kept:
            keep_evidence(kept, label_of(folder, case, healthy), job.folder, reports)
        job.end()
        gpu.end()
        shutil.rmtree(reports, ignore_errors=True)


def label_of(folder, case, healthy):
    return f"{folder}/{case['script']}{' --healthy' if healthy else ''}"


def name_of(label):
    return label.replace("/", "_").replace(" --", "-")


def keep_evidence(folder, label, job, reports=None):
    """The recordings, the dumps of all ranks and the output, from which `report` must find the same again."""
    evidence = Path(folder) / name_of(label)
    evidence.mkdir(exist_ok=True)
    for file in [*job.glob("job.ddpd"), *job.glob("rank*.txt"), *job.glob("job.log"), *job.rglob("*.py")]:
        shutil.copy(file, evidence)
    if reports and (reports / "job.ddpd").exists():
        shutil.copy(reports / "job.ddpd", evidence / "run.ddpd")


def keep(folder, label, mode, seen):
    stem = f"{mode}-{name_of(label)}"
    (Path(folder) / f"{stem}.json").write_text(json.dumps(seen.report, indent=1))
    (Path(folder) / f"{stem}.txt").write_text(seen.text)


def observe(folder, case, healthy, wanted, kept=None):
    seen = {}
    if "pairs" in case:  # records show it; no rank waits for long, so stacks have nothing to show
        wanted = [mode for mode in wanted if mode in ("run", "attach")]
    if case.get("mode") != "run" and set(wanted) & {"attach", "stacks"}:
        seen.update(attach(folder, case, healthy, kept))
    if case.get("mode") != "run" and "bare" in wanted:
        seen.update(attach(folder, case, healthy, kept, recorder=False))
    if "run" in wanted:
        seen.update(run(folder, case, healthy, kept))
    return {mode: one for mode, one in seen.items() if mode in wanted}


def judged(folder, case, healthy, options, wanted):
    """{mode: right} of one side; printed."""
    label = label_of(folder, case, healthy)
    seen = observe(folder, case, healthy, wanted, options.keep)
    again = [mode for mode, one in seen.items() if one.wrong]
    if again and options.ci:  # a shared machine: the second run separates a defect from a chance failure, and both are printed
        print(f"again {label}: " + "; ".join(seen[mode].wrong[0] for mode in again), flush=True)
        seen.update(observe(folder, case, healthy, again))
    for mode, one in seen.items():
        print(f"{'MISS' if one.wrong else 'ok  '} {mode:6} {label}" + "".join(f"\n       {w}" for w in one.wrong), flush=True)
        if options.keep:
            keep(options.keep, label, mode, one)
    return {mode: not one.wrong for mode, one in seen.items()}


def main(options):
    global DEVICE
    DEVICE = real_device if options.device == "cuda" else device
    if lack := (real_device if options.device == "cuda" else build).why_not():
        print(f"skip the {options.device} device: {lack}")
        return 0
    wanted = options.mode.split("+") if options.mode else list(MODES)
    counts = {(mode, side): [0, 0] for mode in wanted for side in ("faulty", "healthy")}
    shard, shards = (int(word) for word in options.shard.split("/"))
    for folder, case in list(chosen(options))[shard - 1::shards]:
        if lack := missing_need(case):
            print(f"skip {folder}/{case['script']}: {lack}", flush=True)
            continue
        for healthy in (False, True):
            twin = healthy or case.get("healthy_only", False)
            if (healthy and (case.get("healthy_only") or case.get("healthy") is False)) or (options.no_twins and twin) or (options.twins and not twin):
                continue
            for mode, right in judged(folder, case, healthy, options, wanted).items():
                counts[mode, "healthy" if twin else "faulty"][0 if right else 1] += 1
    for (mode, side), (right, wrong) in counts.items():
        share = f" ({100 * right / (right + wrong):.0f} %)" if right + wrong else ""
        print(f"zoo ({options.device} device, {mode}): {right} of {right + wrong} {'faulty sides named' if side == 'faulty' else 'healthy sides met with silence'}{share}")
    failed = sum(wrong for _, wrong in counts.values())
    print(f"{sum(right for right, _ in counts.values())} passed, {failed} failed")
    return 1 if failed else 0

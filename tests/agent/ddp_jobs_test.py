# SPDX-License-Identifier: Apache-2.0
"""DDP jobs for several ranks on one GPU (tests/gpu/jobs), each with its healthy twin, under `run` and under `attach`, judged like those of
the zoo.

tests/gpu/run_single_gpu.sh runs them all over NCCL ($DDP_BACKEND=nccl) or, as a dry run, over gloo. Without $DDP_BACKEND a few run over
gloo, so that jobs and judging remain usable on a machine with a GPU; the script's reasons to skip are tested, too."""
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
GPU = HERE.parent / "gpu"
sys.path.insert(0, str(HERE.parent / "zoo"))
import zoo  # noqa: E402

PROGRAM = Path(zoo.TOOL) / "ddpdoctor" if Path(zoo.TOOL).is_dir() else Path(zoo.TOOL)
BACKEND = os.environ.get("DDP_BACKEND", "")
RECORDINGS = os.environ.get("RECORDINGS")  # a folder that gets every job's recording and report
FOLDER = os.path.relpath(GPU / "jobs", zoo.HERE)
CASES = {Path(case["script"]).stem: case for case in zoo.told_cases(GPU / "jobs")}
DRY_RUN = [("attach", "mismatched_op", False), ("run", "unused_parameters", False), ("run", "healthy", True)]
LIMIT = 100  # seconds for one job; the script leaves as much before its end
HANG_TIMEOUT = os.environ.get("HANG_TIMEOUT", "12") if BACKEND == "nccl" else "6"  # ranks on one GPU need more time to connect
needs_the_program = pytest.mark.skipif(not (PROGRAM.parent / "libddpdoctor_agent.so").is_file(), reason="no libddpdoctor_agent.so beside $DDPDOCTOR")


def planned():
    """(mode, job, healthy): every job and its twin in every mode that this backend supports."""
    if not BACKEND:
        return DRY_RUN
    jobs = []
    for mode in ("run", "attach"):
        for name, case in CASES.items():
            modes = case.get(BACKEND, [case["mode"]] if "mode" in case else ["run", "attach"])
            jobs += [(mode, name, healthy) for healthy in (False, True) if mode in modes and healthy >= case.get("healthy_only", False)]
    return jobs


def lacking():
    """What is missing on this machine for these jobs; empty if nothing is."""
    if importlib.util.find_spec("torch") is None:
        return "no torch in this Python"
    if BACKEND != "nccl":
        return ""
    import torch
    import torch.distributed

    if not torch.distributed.is_nccl_available():
        return f"torch {torch.__version__} has no NCCL"
    return "" if torch.cuda.is_available() else f"torch {torch.__version__} sees no GPU"


def observe(mode, job, folder):
    """Runs ddpdoctor on the job; in `mode` "run" it also starts the job. Writes report.json and job.ddpd into `folder`."""
    end = time.time() + LIMIT
    if mode == "attach":
        assert job.wait_ready(False, LIMIT - 30), f"the job did not come up: {job.output()[-2000:]}"
        words = [str(PROGRAM), "attach", str(job.process.pid), "-o", str(folder / "report.json"), "-o", str(folder / "job.ddpd")]
        done = subprocess.run(words, capture_output=True, text=True, timeout=30, stdin=subprocess.DEVNULL)
        assert done.returncode in (0, 1), done.stderr
        assert job.process.poll() is None, f"the job ended while it was observed: {job.output()[-2000:]}"
        return
    while job.process.poll() is None and time.time() < end:
        time.sleep(0.2)
    assert job.process.poll() is not None, f"neither the job nor ddpdoctor ended it within {LIMIT} s: {job.output()[-2000:]}"


@needs_the_program
@pytest.mark.parametrize("mode,name,healthy", [pytest.param(*plan, id="-".join([plan[0], plan[1], *["twin"] * plan[2]])) for plan in planned()])
def test_names_the_cause_of_a_ddp_job_and_none_of_its_twin(mode, name, healthy, tmp_path, record_property):
    if reason := lacking():
        pytest.skip(reason)
    folder = tmp_path / "report"
    folder.mkdir()
    prefix = (str(PROGRAM), "run", "--hang-timeout", HANG_TIMEOUT, "--on-hang", "kill", "--always", "--report-dir", str(folder), "--")
    variables = {key: value for key, value in os.environ.items() if key.startswith(("NCCL_", "CUDA_"))}
    variables.update(DDP_BACKEND=BACKEND or "gloo", PYTHONDONTWRITEBYTECODE="1", **({"STEPS": "60"} if mode == "run" else {}))
    job = zoo.Job(FOLDER, {**CASES[name], "environment": variables}, healthy, prefix if mode == "run" else ())
    try:
        observe(mode, job, folder)
        report = json.loads((folder / "report.json").read_text())
        output = job.output()
    finally:
        job.end()
        for file in ("job.ddpd", "report.json"):
            if RECORDINGS and (folder / file).is_file():
                shutil.copy(folder / file, Path(RECORDINGS) / f"{mode}-{name}{'-twin' * healthy}.{file}")
    first = (report["findings"] or [{}])[0]
    record_property("said", f"{first.get('kind', 'nothing')} {first.get('culprits', '')} {first.get('confidence', '')}")
    wrong = zoo.problems(FOLDER, CASES[name], healthy, report)
    assert not wrong, "\n".join([*wrong, output[-2000:]])


def test_every_job_marks_its_culprit_or_asks_for_no_line():
    scripts = {path.stem for path in (GPU / "jobs").glob("*.py")} - {"one_gpu"}
    assert set(CASES) == scripts
    without = [name for name, case in CASES.items() if case.get("location", True) and not case.get("healthy_only") and not zoo.marked_lines(FOLDER, case)]
    assert not without


def script(tmp_path, nvidia_smi=None, *words, **variables):
    """The output of run_single_gpu.sh, with `nvidia_smi` (the text of a shell program) as the only nvidia-smi."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("bash", "dirname", "grep", "ldd", "awk", "xargs", "realpath", "mktemp", "rm", "echo", "sed"):
        (programs / name).symlink_to(shutil.which(name))
    if nvidia_smi:
        (programs / "nvidia-smi").write_text(f"#!{shutil.which('bash')}\n{nvidia_smi}\n")
        (programs / "nvidia-smi").chmod(0o755)
    done = subprocess.run([str(programs / "bash"), str(GPU / "run_single_gpu.sh"), *words], capture_output=True, text=True, timeout=60,
                          env={"PATH": str(programs), "DDPDOCTOR": str(PROGRAM), "PYTHON": sys.executable, **variables})
    return done.returncode, done.stdout.strip()


def test_the_script_skips_without_a_gpu_and_says_so(tmp_path):
    assert script(tmp_path) == (0, "skipped: no nvidia-smi: no GPU here")


def test_the_script_skips_where_the_driver_shows_no_gpu(tmp_path):
    assert script(tmp_path, "echo NVIDIA-SMI has failed") == (0, "skipped: nvidia-smi shows no GPU")


@needs_the_program
def test_the_script_skips_without_nccl(tmp_path):
    status, said = script(tmp_path, "echo 'GPU 0: a stand-in'", NCCL_LIBRARY="/nonexistent")
    assert (status, said.splitlines()[-1]) == (0, "skipped: no libnccl.so.2: set NCCL_LIBRARY")


@needs_the_program
def test_the_script_skips_without_the_agent(tmp_path):
    alone = tmp_path / "alone"
    alone.mkdir()
    shutil.copy("/bin/true", alone / "program")
    assert script(tmp_path, "echo 'GPU 0: a stand-in'", DDPDOCTOR=str(alone / "program")) == (0, "skipped: no libddpdoctor_agent.so beside $DDPDOCTOR")


def test_the_script_refuses_words_it_does_not_know(tmp_path):
    assert script(tmp_path, None, "--backend", "smoke")[0] == 2

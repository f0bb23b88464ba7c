# SPDX-License-Identifier: Apache-2.0
"""The NCCL functions we stand in front of against what NCCL's wheels export. A new function fails this test until somebody decides."""
import os
import re
import subprocess
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parent.parent.parent
TABLE = SOURCE / "agent" / "nccl" / "nccl_functions.inc"
TOOL = Path(os.environ.get("DDPDOCTOR", ""))
AGENT = (TOOL if TOOL.is_dir() else TOOL.parent) / "libddpdoctor_agent.so"

PACKAGES = ["nvidia-nccl-cu12", "nvidia-nccl-cu13"]
# As `pip index versions` lists them, 2026-11-20. A newer one: tests/support/nccl_symbols.py, then a line here.
WHEELS = "2.27.3 2.27.5 2.27.6 2.27.7 2.28.3 2.28.7 2.28.9 2.29.2 2.29.3 2.29.7 2.30.3 2.30.4 2.30.7 2.31.2 2.32.3".split()
OF_CUDA_12_ONLY = {"2.27.3", "2.27.5", "2.27.6"}

# Neither communicates nor changes who communicates with whom.
LEFT_OUT = {
    "ncclComm(Count|CuDevice|UserRank|MemStats|QueryProperties)": "asks",
    "ncclComm(Register|Deregister)": "local: memory of this rank",
    "ncclMem(Alloc|Free)": "local",
    "ncclGet(Version|ErrorString|LastError)": "asks",
    "ncclGet.*(DevicePointer|LeInfo)": "asks",
    "ncclWinGetUserPtr": "asks",
    "nccl.*(CreateRequirement|CalcSlots)": "fills a structure",
    "ncclTeam.*": "computes",
    "ncclParam.*": "settings",
    "ncclResetDebugInit(Internal)?": "logging",
    "ncclSetEncryption": "a setting",
}
# RCCL's, which has all of NCCL's, too.
OF_RCCL = {"ncclAllToAll", "ncclAllToAllv", "ncclAlltoAllv", "ncclAllReduceWithBias"}


def table():
    return re.findall(r"^NCCL\((\d+), (\w+), \w+\)", TABLE.read_text(), re.M)


def exported(package=PACKAGES[0]):
    lines = (Path(__file__).parent / "symbols" / f"{package}.txt").read_text().splitlines()
    return {line.split()[0]: line.split()[1:] for line in lines if not line.startswith("#")}


def versions_of(package):
    return {version for all_versions in exported(package).values() for version in all_versions}


@pytest.mark.parametrize("package", PACKAGES)
def test_every_function_of_every_version_is_decided(package):
    ours = {name for _, name in table()}
    undecided = {name: versions for name, versions in exported(package).items()
                 if name not in ours and not any(re.fullmatch(pattern, name) for pattern in LEFT_OUT)}
    assert not undecided


def test_stands_before_nothing_that_nobody_has():
    assert {name for _, name in table()} - set(exported()) == OF_RCCL


def test_leaves_out_nothing_that_it_stands_before():
    ours = {name for _, name in table()}
    assert not {name for name in ours if any(re.fullmatch(pattern, name) for pattern in LEFT_OUT)}


def test_knows_every_wheel_from_2_27_on():
    assert versions_of("nvidia-nccl-cu12") == set(WHEELS)
    assert versions_of("nvidia-nccl-cu13") == set(WHEELS) - OF_CUDA_12_ONLY


def test_numbers_its_functions_in_order():
    assert [int(number) for number, _ in table()] == list(range(len(table())))


@pytest.mark.skipif(not AGENT.is_file(), reason="no libddpdoctor_agent.so beside $DDPDOCTOR")
def test_exports_the_table():
    out = subprocess.run(["nm", "-D", "--defined-only", str(AGENT)], capture_output=True, text=True, check=True).stdout
    names = {line.split()[-1] for line in out.splitlines()}
    assert {name for name in names if re.fullmatch("nccl[A-Z].*", name) and "Profiler_v" not in name} == {name for _, name in table()}

# SPDX-License-Identifier: Apache-2.0
"""The NCCL functions we stand in front of against what NCCL's wheels export. A new function fails this test until somebody decides."""
import os
import re
import subprocess
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parent.parent.parent
TABLE = SOURCE / "agent" / "nccl_functions.inc"
TOOL = Path(os.environ.get("DDPDOCTOR", ""))
AGENT = (TOOL if TOOL.is_dir() else TOOL.parent) / "libddpdoctor_agent.so"

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


def exported():
    lines = (Path(__file__).parent / "nccl_symbols.txt").read_text().splitlines()
    return {line.split()[0]: line.split()[1:] for line in lines if not line.startswith("#")}


def test_every_function_of_every_version_is_decided():
    ours = {name for _, name in table()}
    undecided = {name: versions for name, versions in exported().items()
                 if name not in ours and not any(re.fullmatch(pattern, name) for pattern in LEFT_OUT)}
    assert not undecided


def test_stands_before_nothing_that_nobody_has():
    assert {name for _, name in table()} - set(exported()) == OF_RCCL


def test_leaves_out_nothing_that_it_stands_before():
    ours = {name for _, name in table()}
    assert not {name for name in ours if any(re.fullmatch(pattern, name) for pattern in LEFT_OUT)}


def test_knows_the_versions_that_it_speaks_of():
    versions = {version for all_versions in exported().values() for version in all_versions}
    assert {"2.27.3", "2.28.9", "2.29.7", "2.30.7", "2.31.2", "2.32.3"} <= versions


def test_numbers_its_functions_in_order():
    assert [int(number) for number, _ in table()] == list(range(len(table())))


@pytest.mark.skipif(not AGENT.is_file(), reason="no libddpdoctor_agent.so beside $DDPDOCTOR")
def test_exports_the_table():
    out = subprocess.run(["nm", "-D", "--defined-only", str(AGENT)], capture_output=True, text=True, check=True).stdout
    names = {line.split()[-1] for line in out.splitlines()}
    assert {name for name in names if re.fullmatch("nccl[A-Z].*", name) and "Profiler_v" not in name} == {name for _, name in table()}

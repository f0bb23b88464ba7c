# SPDX-License-Identifier: Apache-2.0
"""Compares the NCCL functions that the agent replaces with what NCCL's wheels export: `nm -D` of every wheel since 2.27, kept in symbols/,
and of the newest one in the registry, which is downloaded (200 MB). A new function fails this test until it is added to one of the lists."""
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(SOURCE / "tests" / "support"))
import nccl_symbols  # noqa: E402

TABLE = SOURCE / "agent" / "nccl" / "nccl_functions.inc"
PACKAGES = ["nvidia-nccl-cu12", "nvidia-nccl-cu13"]

# These neither communicate nor change which ranks communicate.
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
# RCCL's own, in addition to all of NCCL's.
OF_RCCL = {"ncclAllToAll", "ncclAllToAllv", "ncclAlltoAllv", "ncclAllReduceWithBias"}


def table():
    return re.findall(r"^NCCL\((\d+), (\w+), \w+\)", TABLE.read_text(), re.M)


def exported(package=PACKAGES[0]):
    lines = (Path(__file__).parent / "symbols" / f"{package}.txt").read_text().splitlines()
    return {line.split()[0]: line.split()[1:] for line in lines if not line.startswith("#")}


def undecided(names):
    ours = {name for _, name in table()}
    return {name for name in names if name not in ours and not any(re.fullmatch(pattern, name) for pattern in LEFT_OUT)}


@pytest.mark.parametrize("package", PACKAGES)
def test_every_function_of_every_version_is_decided(package):
    assert undecided(exported(package)) == set()


def test_stands_before_nothing_that_nobody_has():
    assert {name for _, name in table()} - set(exported()) == OF_RCCL


def test_leaves_out_nothing_that_it_stands_before():
    ours = {name for _, name in table()}
    assert not {name for name in ours if any(re.fullmatch(pattern, name) for pattern in LEFT_OUT)}


def of_the_registry(package):
    found = nccl_symbols.versions_of_the_registry(package)
    if not found:
        pytest.skip(f"no registry that knows {package} (pip index versions)")
    return found


@pytest.mark.parametrize("package", PACKAGES)
def test_the_list_has_every_wheel_of_the_registry(package):
    """If it has not: `tests/support/nccl_symbols.py PACKAGE new`."""
    assert set(of_the_registry(package)) <= nccl_symbols.versions_of_the_list(package)


def test_the_newest_wheel_exports_what_its_list_says():
    package = PACKAGES[-1]
    newest = of_the_registry(package)[-1]
    if shutil.which("nm") is None:
        pytest.skip("no nm")
    try:
        names = nccl_symbols.download(package, newest, limit=240)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        pytest.skip(f"{package} {newest} cannot be downloaded: {error}")
    assert undecided(names) == set()
    assert names == {name for name, versions in exported(package).items() if newest in versions}


def test_numbers_its_functions_in_order():
    assert [int(number) for number, _ in table()] == list(range(len(table())))

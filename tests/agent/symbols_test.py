# SPDX-License-Identifier: Apache-2.0
"""For each torch whose exported c10d names are kept in symbols/ (`nm -D --defined-only libtorch_cpu.so`, names only), the agent has a door
for every operation of its gloo backend; what may be absent in a version is listed here."""
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from guest import SOURCE

LISTS = sorted((Path(__file__).parent / "symbols").glob("torch-*.txt"))
HOOKS = set(re.findall(r"_ZN4c10d\w+", (SOURCE / "agent" / "c10d" / "c10d_hooks.inc").read_text()))
OPERATION = re.compile(r"_ZN4c10d\d+(?:ProcessGroupGloo|ProcessGroupWrapper)\d+(broadcast|allreduce|reduce|allgather|gather|scatter|alltoall|barrier|monitoredBarrier"
                       r"|send|recv|_allgather|_reduce|all_gather|all_to_all)")
# Helpers and entry points that only forward to an operation, or that compute no collective.
NO_OPERATION = re.compile(r"(monitoredBarrier|C[12]E|D[012]Ev).*(chrono|Timeout)|runCollectiveChecks")


def names(path):
    return set(path.read_text().split())


@pytest.mark.parametrize("path", LISTS, ids=lambda path: path.stem)
def test_every_operation_of_the_backend_has_a_door(path):
    operations = {name for name in names(path) if OPERATION.match(name) and not NO_OPERATION.search(name)}
    assert len(operations) > 20
    assert operations - HOOKS == set()


@pytest.mark.parametrize("path", LISTS, ids=lambda path: path.stem)
def test_ends_of_calls_and_the_reducer_are_seen(path):
    found = names(path) & HOOKS
    for part in ("9AsyncWork14finishWorkGlooEv", "ProcessGroupGloo7enqueueE", "ProcessGroupGlooC", "7ReducerC1E", "7Reducer13autograd_hookEm", "7Reducer19mark_variable_readyEm",
                 "7Reducer20prepare_for_backwardE", "8TCPStore3getE", "8TCPStore4waitE"):
        assert any(part in name for name in found), part


def test_every_door_leads_somewhere_in_some_version():
    known = set().union(*map(names, LISTS))
    newer = {name for name in HOOKS if "_single" in name}  # 2.14 renamed these
    assert HOOKS - known - newer == set()


def test_the_installed_torch_exports_what_its_list_says():
    if shutil.which("nm") is None:
        pytest.skip("no nm")
    where = subprocess.run([sys.executable, "-c", "import importlib.util as u; print(u.find_spec('torch').submodule_search_locations[0])"],
                           capture_output=True, text=True, check=False).stdout.strip()
    library = Path(where) / "lib" / "libtorch_cpu.so"
    version = Path(where) / "version.py"
    kept = {path.stem: path for path in LISTS}
    number = re.search(r"__version__ = '([\d.]+)", version.read_text()).group(1) if version.is_file() else ""
    if "torch-" + number not in kept or not library.is_file():
        pytest.skip(f"no list for torch {number}")
    exported = {line.split()[-1].split("@")[0] for line in
                subprocess.run(["nm", "-D", "--defined-only", str(library)], capture_output=True, text=True, check=True).stdout.splitlines()}
    assert names(kept["torch-" + number]) <= exported

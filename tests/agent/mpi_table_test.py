# SPDX-License-Identifier: Apache-2.0
"""Checks the table of MPI functions against itself and against the header of every MPI that is installed."""
import re
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parent.parent
ROW = re.compile(r"^MPI\((\d+), (\d+), (\w+), (k\w+), (k\w+)((?:, -?\d+){10})\)$", re.M)
HEADERS = [Path(p) for p in ("/usr/lib/x86_64-linux-gnu/openmpi/include/mpi.h", "/usr/include/x86_64-linux-gnu/mpich/mpi_proto.h",
                             "/usr/include/x86_64-linux-gnu/mpich/mpi.h") if Path(p).is_file()]


def rows():
    return ROW.findall((SOURCE / "agent" / "mpi" / "mpi_calls.inc").read_text())


def test_numbers_its_functions_in_order():
    table = (SOURCE / "agent" / "mpi" / "mpi_calls.inc").read_text()
    assert [int(r[0]) for r in rows()] == list(range(table.count("\nMPI(")))
    assert f"kMpiCalls = {len(rows())};" in (SOURCE / "agent" / "mpi" / "mpi_calls.h").read_text()


def test_no_argument_lies_beyond_the_last():
    for _, arity, name, _, _, places in rows():
        assert all(int(p) < int(arity) for p in places.split(",")[1:]), name


@pytest.mark.skipif(not HEADERS, reason="no mpi.h of OpenMPI or MPICH")
@pytest.mark.parametrize("header", HEADERS, ids=str)
def test_arguments_stand_where_the_header_says(header):
    text = re.sub(r"\s+", " ", header.read_text())
    wanted = {"count": 4, "dtype": 5, "reduce": 6, "peer": 7, "comm": 8}
    kinds = {"kCollective", "kNonblocking", "kPointToPoint", "kPointToPointStart", "kPersistent", "kAbort"}
    seen = 0
    for row in rows():
        found = re.search(rf"int MPI_{row[2]}\(([^)]*)\)", text)
        if found is None:
            continue
        seen += 1
        arguments = [] if found[1].strip() == "void" else found[1].split(",")
        assert len(arguments) == int(row[1]), row[2]
        places = [int(p) for p in row[5].split(",")[1:]]
        if row[3] in kinds:
            names = dict(zip(wanted, places))
            for key, pattern in (("comm", r"MPI_Comm"), ("dtype", r"MPI_Datatype"), ("reduce", r"MPI_Op"), ("count", r"int \w*count"),
                                 ("peer", r"int (root|dest|source)")):
                if names[key] >= 0:
                    assert re.search(pattern, arguments[names[key]]), (row[2], key, arguments[names[key]])
    if "mpi_proto" in header.name or "openmpi" in str(header):
        assert seen == len(rows())

# SPDX-License-Identifier: Apache-2.0
"""Which functions each NCCL wheel exports: names only, for tests/agent/nccl_table_test.py.

    nccl_symbols.py PACKAGE VERSION…    adds these versions of nvidia-nccl-cu12 or -cu13 to tests/agent/symbols/PACKAGE.txt (pip
                                        downloads one wheel after the other; they are large)
    nccl_symbols.py PACKAGE new         adds all versions from 2.27 on that the registry has and the list has not

A line of the file is a name and the versions that have it."""
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

LISTS = Path(__file__).resolve().parent.parent / "agent" / "symbols"
HEAD = "# Functions that {package} exports, and the versions that do. Written by tests/support/nccl_symbols.py.\n"


def read(path):
    lines = path.read_text().splitlines() if path.exists() else []
    return {line.split()[0]: set(line.split()[1:]) for line in lines if line and not line.startswith("#")}


def names_of(library):
    out = subprocess.run(["nm", "-D", "--defined-only", str(library)], capture_output=True, text=True, check=True).stdout
    return {name for name in re.findall(r"^\S+ [TW] (\w+)$", out, re.M) if name.startswith("nccl")}


def download(package, version, limit=None):
    """The functions of a wheel."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", folder, f"{package}=={version}"],
                       check=True, timeout=limit)
        wheel = next(Path(folder).glob("*.whl"))
        with zipfile.ZipFile(wheel) as archive:
            member = next(name for name in archive.namelist() if name.endswith("/libnccl.so.2"))
            return names_of(archive.extract(member, folder))


def key(version):
    return [int(part) for part in version.split(".")[:3]]


def versions_of_the_registry(package, limit=60):
    """Versions since 2.27, oldest first; empty if no registry answers."""
    try:
        out = subprocess.run([sys.executable, "-m", "pip", "index", "versions", package], capture_output=True, text=True, check=True, timeout=limit).stdout
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
        return []
    listed = re.search(r"^Available versions: (.*)$", out, re.M)
    return sorted((v for v in (listed[1].split(", ") if listed else []) if key(v) >= [2, 27]), key=key)


def versions_of_the_list(package):
    return {version for versions in read(LISTS / f"{package}.txt").values() for version in versions}


def add(known, version, names):
    for name in names:
        known.setdefault(name, set()).add(version)


def write(path, known):
    path.write_text(HEAD.format(package=path.stem) + "".join(f"{name} {' '.join(sorted(known[name], key=key))}\n" for name in sorted(known)))


if __name__ == "__main__":
    package, *versions = sys.argv[1:]
    path = LISTS / f"{package}.txt"
    if versions == ["new"]:
        versions = [v for v in versions_of_the_registry(package) if v not in versions_of_the_list(package)]
    for wanted in versions:
        symbols = read(path)
        add(symbols, wanted, download(package, wanted))
        write(path, symbols)

# SPDX-License-Identifier: Apache-2.0
"""Finds the program: next to the Python that imports this package, in the folder that pip uses for scripts."""
import os
import shutil
import sys
import sysconfig
from pathlib import Path
from typing import Iterator

NAME = "ddpdoctor"


class ProgramMissing(RuntimeError):
    """The program `ddpdoctor` is not installed next to this package."""


def _is_program(path: Path) -> bool:
    """True for an ELF file: not a script, which would start Python and this module again."""
    try:
        with open(path, "rb") as file:
            return file.read(4) == b"\x7fELF" and os.access(path, os.X_OK)
    except OSError:
        return False


def _places() -> Iterator[Path]:
    chosen = os.environ.get("DDPDOCTOR")
    if chosen:
        yield Path(chosen)
    package = Path(__file__).resolve().parent
    yield package.parent / "bin" / NAME  # pip install --target
    yield Path(sysconfig.get_path("scripts")) / NAME
    for scheme in sysconfig.get_scheme_names():
        if scheme in ("posix_user", "posix_local", "deb_system"):
            yield Path(sysconfig.get_path("scripts", scheme)) / NAME
    for parent in package.parents:  # PREFIX/lib/python3.11/site-packages/ddpdoctor, seen from another prefix
        if parent.name in ("lib", "lib64"):
            yield parent.parent / "bin" / NAME
    found = shutil.which(NAME)
    if found:
        yield Path(found)


def program() -> str:
    """The absolute path of the program; $DDPDOCTOR comes first. Raises ProgramMissing."""
    for place in _places():
        if _is_program(place):
            return str(place.absolute())
    raise ProgramMissing(f"no program `{NAME}` beside {sys.executable} or in PATH; run `pip install --force-reinstall {NAME}`, "
                         "or set DDPDOCTOR to its path")

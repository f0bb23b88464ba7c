# SPDX-License-Identifier: Apache-2.0
"""Shared by the tests of the agent: where it is, and how to run programs with and without it.

$DDPDOCTOR is the program (or its folder); libddpdoctor_agent.so is next to it."""
import os
import shutil
import subprocess
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2]
TOOL = Path(os.environ.get("DDPDOCTOR", "")).absolute()
AGENT = (TOOL if TOOL.is_dir() else TOOL.parent) / "libddpdoctor_agent.so"

needs_agent = pytest.mark.skipif(not AGENT.is_file(), reason="no libddpdoctor_agent.so beside $DDPDOCTOR")


def under(spool, environment=None, preload=()):
    variables = dict(os.environ if environment is None else environment)
    variables.update(LD_PRELOAD=":".join([*preload, str(AGENT)]), DDPDOCTOR_SPOOL=str(spool))
    return variables


def behaviour(command, spool=None, environment=None, data=b"", limit=120, **more):
    variables = dict(os.environ if environment is None else environment)
    if spool is not None:
        variables = under(spool, environment)
    done = subprocess.run([str(c) for c in command], env=variables, input=data, capture_output=True, timeout=limit, **more)
    return done.returncode, done.stdout, done.stderr


def behaves_alike(command, spool, **more):
    alone = behaviour(command, **more)
    assert behaviour(command, spool=spool, **more) == alone
    return alone


def compiled(folder, name, text, *flags):
    """Compiles a C program or library from `text`, or skips the test if there is no compiler."""
    if shutil.which("gcc") is None:
        pytest.skip("no gcc here")
    source = folder / (name + ".c")
    source.write_text(text)
    done = subprocess.run(["gcc", "-O1", "-o", folder / name, source, *map(str, flags)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip("gcc: " + done.stderr[-300:])
    return folder / name

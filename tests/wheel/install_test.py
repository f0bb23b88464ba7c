# SPDX-License-Identifier: Apache-2.0
"""cmake --install, from the build that $DDPDOCTOR lies in: the agent is replaced, never written into."""
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

BUILD = Path(os.environ.get("DDPDOCTOR", "")).resolve().parent

pytestmark = pytest.mark.skipif(not (BUILD / "cmake_install.cmake").is_file() or shutil.which("cmake") is None, reason="$DDPDOCTOR is in no build folder")


def install(prefix, **environment):
    subprocess.run(["cmake", "--install", str(BUILD), "--prefix", str(prefix)], check=True, capture_output=True, env={**os.environ, **environment})


def test_what_is_installed_is_a_whole_tool(tmp_path):
    install(tmp_path)
    assert subprocess.run([tmp_path / "bin/ddpdoctor", "--version"], capture_output=True, text=True, check=True).stdout.startswith("ddpdoctor ")
    assert (tmp_path / "share/doc/ddpdoctor/LICENSE").is_file()
    done = subprocess.run([tmp_path / "bin/ddpdoctor", "run", "--", "true"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_server_for_agents_finds_its_package(tmp_path):
    install(tmp_path)
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "DDPDOCTOR")}
    said = subprocess.run([tmp_path / "bin/ddpdoctor", "mcp"], capture_output=True, text=True, stdin=subprocess.DEVNULL,
                          env={**environment, "DDPDOCTOR_PYTHON": sys.executable})
    assert "no Python package" not in said.stderr, said
    assert said.returncode == (0 if importlib.util.find_spec("mcp") else 3), said


def test_a_job_keeps_the_agent_that_it_has_mapped(tmp_path):
    agent = tmp_path / "lib/ddpdoctor/libddpdoctor_agent.so"
    install(tmp_path)
    with open(agent, "rb") as mapped:
        before = mapped.read()
        first = agent.stat().st_ino
        install(tmp_path)
        assert agent.stat().st_ino != first
        mapped.seek(0)
        assert mapped.read() == before
    assert sorted(path.name for path in agent.parent.iterdir() if path.name.startswith(".")) == []


def test_a_staging_folder_is_honoured(tmp_path):
    install("/usr", DESTDIR=str(tmp_path))
    assert (tmp_path / "usr/bin/ddpdoctor").is_file() and (tmp_path / "usr/lib/ddpdoctor/libddpdoctor_agent.so").is_file()

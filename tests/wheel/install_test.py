# SPDX-License-Identifier: Apache-2.0
"""cmake --install, from the build of $DDPDOCTOR: the agent is replaced, never overwritten."""
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


def test_completions_and_manual_pages_are_where_shells_look(tmp_path):
    install("/usr", DESTDIR=str(tmp_path))
    share, program = tmp_path / "usr/share", tmp_path / "usr/bin/ddpdoctor"
    places = {"bash": "bash-completion/completions/ddpdoctor", "zsh": "zsh/site-functions/_ddpdoctor", "fish": "fish/vendor_completions.d/ddpdoctor.fish"}
    for shell, place in places.items():
        said = subprocess.run([program, "completion", shell], capture_output=True, text=True, check=True).stdout
        assert said and (share / place).read_text() == said, shell
    pages = {page.name for page in (share / "man/man1").iterdir()}
    assert {"ddpdoctor.1", "ddpdoctor-attach.1", "ddpdoctor-run.1", "ddpdoctor-report.1", "ddpdoctor-mcp.1"} <= pages
    said = subprocess.run([program, "man", "attach"], capture_output=True, text=True, check=True).stdout
    assert (share / "man/man1/ddpdoctor-attach.1").read_text() == said
    assert subprocess.run(["bash", "-n", share / places["bash"]]).returncode == 0


@pytest.mark.skipif(shutil.which("cpack") is None or shutil.which("dpkg-deb") is None, reason="no cpack or dpkg-deb")
def test_the_deb_has_them_too(tmp_path):
    subprocess.run(["cpack", "-G", "DEB", "--config", str(BUILD / "CPackConfig.cmake"), "-B", str(tmp_path), "-D", "CPACK_DEBIAN_PACKAGE_SHLIBDEPS=OFF",
                    "-D", "CPACK_STRIP_FILES=OFF"], check=True, capture_output=True)
    (package,) = tmp_path.glob("*.deb")
    names = subprocess.run(["dpkg-deb", "-c", package], capture_output=True, text=True, check=True).stdout
    for name in ("bin/ddpdoctor", "lib/ddpdoctor/libddpdoctor_agent.so", "share/man/man1/ddpdoctor-run.1", "share/bash-completion/completions/ddpdoctor",
                 "share/ddpdoctor/python/ddpdoctor/mcp_server.py", "share/ddpdoctor/python/ddpdoctor/integrations/steps.py"):
        assert f"./usr/{name}\n" in names, names

# SPDX-License-Identifier: Apache-2.0
"""What is in the wheel: files that load in old images, licences, one tag for all Pythons."""
import re
import shutil
import subprocess
import sys
import zipfile

import pytest

from conftest import ROOT, bare


def readelf(*words):
    if shutil.which("readelf") is None:
        pytest.skip("no readelf here")
    return subprocess.run(["readelf", "-W", *map(str, words)], capture_output=True, text=True, check=True).stdout


def newest_glibc(path):
    needs = re.findall(r"Name: GLIBC_(\d+)\.(\d+)", readelf("-V", path))
    assert needs
    return max((int(major), int(minor)) for major, minor in needs)


def test_one_wheel_is_for_all_pythons(wheel):
    assert re.fullmatch(r"ddpdoctor-[0-9.]+-py3-none-manylinux_2_17_x86_64(\.manylinux2014_x86_64)?\.whl|"
                        r"ddpdoctor-[0-9.]+-py3-none-manylinux2014_x86_64\.manylinux_2_17_x86_64\.whl", wheel.name)


def test_the_libraries_ask_for_no_glibc_newer_than_2_17(installed):
    names = [library.name for library in installed.libraries()]
    assert "libddpdoctor_agent.so" in names
    for library in installed.libraries():
        assert newest_glibc(library) <= (2, 17), library


def test_the_program_asks_for_no_library(installed):
    assert "NEEDED" not in readelf("-d", installed.program)
    assert "INTERP" not in readelf("-l", installed.program)


def test_nothing_is_missing(installed):
    for library in installed.libraries():
        assert "not found" not in subprocess.run(["ldd", "-r", str(library)], capture_output=True, text=True, check=True).stdout


def test_the_licence_of_each_library_is_there(wheel):
    linked = (ROOT / "docs/linked.md").read_text()
    names = zipfile.ZipFile(wheel).namelist()
    texts = {name.rsplit("/", 1)[-1] for name in names if ".dist-info/licenses/" in name}
    wanted = {"LICENSE", "linked.md", "libc6-dev.txt", "libdw-dev.txt", "libzstd-dev.txt", "libfmt-dev.txt", "zlib1g-dev.txt", "libbz2-dev.txt",
              "liblzma-dev.txt", "libcli11-dev.txt", "nlohmann-json3-dev.txt", "libexpected-dev.txt", "libstdc++-12-dev.txt"}
    assert wanted <= texts
    assert len([name for name in texts if name.startswith("tree")]) == 2
    assert len(re.findall(r"^\| [a-z]", linked, re.M)) >= 10


def test_both_ways_to_call_it_give_one_version(installed, wheel):
    version = wheel.name.split("-")[1]
    said = installed.run("--version")
    assert (said.returncode, said.stdout) == (0, f"ddpdoctor {version}\n")
    module = subprocess.run([str(installed.python), "-m", "ddpdoctor", "--version"], capture_output=True, text=True, env=bare())
    assert (module.returncode, module.stdout) == (0, said.stdout)
    assert subprocess.run([str(installed.python), "-m", "ddpdoctor", "attach", "nonsense"], capture_output=True, env=bare()).returncode == 2


def test_the_server_for_agents_is_an_extra(installed, wheel):
    names = [name for name in zipfile.ZipFile(wheel).namelist() if name.endswith(".dist-info/METADATA")]
    assert "Provides-Extra: mcp" in zipfile.ZipFile(wheel).read(names[0]).decode()
    for words in ([installed.program, "mcp"], [installed.python, "-m", "ddpdoctor", "mcp"]):
        said = subprocess.run(list(map(str, words)), capture_output=True, text=True, env=bare(), stdin=subprocess.DEVNULL)
        assert said.returncode == 3 and "-m pip install 'mcp>=1.10'" in said.stderr and str(installed.folder) in said.stderr, said


def test_the_callbacks_are_in_it_and_load_no_framework(installed):
    asked = ("import sys, ddpdoctor.integrations.steps, ddpdoctor.integrations.accelerate, importlib.util as u\n"
             "print(all(u.find_spec('ddpdoctor.integrations.' + name) for name in ('lightning', 'transformers')), 'torch' in sys.modules)")
    said = subprocess.run([str(installed.python), "-c", asked], capture_output=True, text=True, env=bare())
    assert said.stdout == "True False\n", said


def test_a_folder_of_its_own_works_too(wheel, tmp_path):
    subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--no-index", "--target", str(tmp_path), str(wheel)], check=True, env=bare())
    assert (tmp_path / "libexec/ddpdoctor/libddpdoctor_agent.so").is_file()
    said = subprocess.run([sys.executable, "-m", "ddpdoctor", "--version"], capture_output=True, text=True, env={**bare(), "PYTHONPATH": str(tmp_path)})
    assert said.stdout.startswith("ddpdoctor ")

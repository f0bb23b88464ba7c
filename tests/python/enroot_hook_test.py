# SPDX-License-Identifier: Apache-2.0
"""packaging/enroot/60-ddpdoctor.sh with the variables that enroot passes to a hook: the lines that it writes are bind-mounted."""
import os
import shutil
import subprocess

import pytest

from conftest import ROOT

HOOK = ROOT / "packaging/enroot/60-ddpdoctor.sh"


def installed(prefix, folder="lib"):
    (prefix / "bin").mkdir(parents=True)
    shutil.copy(os.environ["DDPDOCTOR"], prefix / "bin/ddpdoctor")
    (prefix / folder / "ddpdoctor").mkdir(parents=True)
    (prefix / folder / "ddpdoctor/libddpdoctor_agent.so").write_bytes(b"agent")


def hook(folder, **more):
    mounts = folder / "mounts"
    mounts.write_text("/proc /proc rbind\n")
    variables = {"PATH": "/usr/bin:/bin", "ENROOT_MOUNTS": str(mounts), "ENROOT_ROOTFS": str(folder / "rootfs"), "ENROOT_ENVIRON": str(folder / "environ"), "ENROOT_PID": "1", **more}
    done = subprocess.run([str(HOOK)], env=variables, capture_output=True, text=True)
    first, *lines = mounts.read_text().splitlines()
    assert first == "/proc /proc rbind"
    return done, lines


@pytest.mark.parametrize("folder", ["lib", "libexec"])
def test_program_and_agent_are_mounted_read_only(tmp_path, folder):
    installed(tmp_path / "opt", folder)
    done, lines = hook(tmp_path, DDPDOCTOR_PREFIX=str(tmp_path / "opt"))
    assert (done.returncode, done.stderr) == (0, "")
    fields = [line.split() for line in lines]
    assert [(source, target) for source, target, *_ in fields] == [(f"{tmp_path}/opt/bin/ddpdoctor", "/usr/local/bin/ddpdoctor"),
                                                                   (f"{tmp_path}/opt/{folder}/ddpdoctor", f"/usr/local/{folder}/ddpdoctor")]
    assert [options.split(",")[:3] for *_, options in fields] == [["x-create=file", "bind", "ro"], ["x-create=dir", "bind", "ro"]]


def test_the_program_in_path_is_found_through_its_link(tmp_path):
    installed(tmp_path / "opt")
    (tmp_path / "links").mkdir()
    (tmp_path / "links/ddpdoctor").symlink_to(tmp_path / "opt/bin/ddpdoctor")
    assert len(hook(tmp_path, PATH=f"{tmp_path}/links:/usr/bin:/bin")[1]) == 2


def test_a_container_starts_without_it(tmp_path):
    installed(tmp_path / "with space")
    for more, words in (({}, ""), ({"DDPDOCTOR_PREFIX": str(tmp_path / "with space")}, "has a space"), ({"DDPDOCTOR_PREFIX": str(tmp_path)}, "is not there"),
                        ({"DDPDOCTOR_PREFIX": "opt"}, "not absolute"), ({"DDPDOCTOR_PREFIX": str(tmp_path / "with space"), "DDPDOCTOR_ENROOT": "off"}, "")):
        done, lines = hook(tmp_path, **more)
        assert (done.returncode, lines) == (0, []), done
        assert words in done.stderr and bool(words) == bool(done.stderr), done


@pytest.mark.skipif(shutil.which("unshare") is None or os.geteuid() != 0, reason="only root can mount")
def test_the_lines_give_a_container_a_program_that_runs(tmp_path):
    installed(tmp_path / "opt")
    _, lines = hook(tmp_path, DDPDOCTOR_PREFIX=str(tmp_path / "opt"))
    rootfs, script = tmp_path / "rootfs", []
    for source, target, _, options in map(str.split, lines):
        make = "mkdir -p" if "x-create=dir" in options else "touch"
        script += [f"mkdir -p $(dirname {rootfs}{target})", f"{make} {rootfs}{target}", f"mount --bind -o ro {source} {rootfs}{target}"]
    script += [f"{rootfs}/usr/local/bin/ddpdoctor --version", f"cat {rootfs}/usr/local/lib/ddpdoctor/libddpdoctor_agent.so"]
    done = subprocess.run(["unshare", "--mount", "sh", "-ec", "\n".join(script)], capture_output=True, text=True)
    if "Operation not permitted" in done.stderr or "permission denied" in done.stderr:
        pytest.skip("mounts are not permitted here")
    assert done.returncode == 0 and done.stdout.startswith("ddpdoctor ") and done.stdout.endswith("agent"), done

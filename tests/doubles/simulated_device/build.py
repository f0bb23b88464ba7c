# SPDX-License-Identifier: Apache-2.0
"""Builds the simulated device at first use, with the system's compiler and the torch of this Python, and keeps it: `folder()` returns where
it is."""
import hashlib
import os
import shutil
import subprocess
import sysconfig
import tempfile
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).resolve().parent
UNITY = ("process_group.cc", "collectives.cc", "values.cc")  # one unit: torch's headers are most of the work


def torch_folder():
    """Without importing torch, which takes seconds."""
    spec = find_spec("torch")
    return Path(spec.origin).parent if spec else None


def why_not():
    """What is missing on this machine for it; None if nothing is."""
    torch = torch_folder()
    if torch is None or not (torch / "include" / "torch" / "csrc" / "distributed" / "c10d" / "FlightRecorderDetail.hpp").exists():
        return "no torch with a flight recorder (2.11 and later)"
    if (torch / "lib" / "libtorch_cuda.so").exists():
        return "a torch for CUDA, which has a ProcessGroupNCCL of its own"
    return None if shutil.which("g++") and shutil.which("strip") else "no g++ or no strip"


def library(out, name, sources, *more, flags=("-Wall", "-Wextra")):
    subprocess.run(["g++", "-O1", "-std=c++20", "-fPIC", "-pthread", *flags, "-shared", f"-Wl,-soname,{name}", "-Wl,-rpath,$ORIGIN", f"-I{HERE}",
                    "-o", str(out / name), *map(str, sources), f"-L{out}", *more], check=True)


def compile_all(out):
    torch = torch_folder()
    subprocess.run(["g++", "-O1", "-std=c++20", "-pthread", "-Wall", "-Wextra", "-o", str(out / "device"), str(HERE / "device.cc")], check=True)
    library(out, "libcuda.so.1", [HERE / "libcuda.cc"], flags=("-Wall", "-Wextra", "-fvisibility=hidden"))
    subprocess.run(["strip", "--strip-all", str(out / "libcuda.so.1")], check=True)
    library(out, "libcudart.so.12", [HERE / "libcudart.cc"], "-l:libcuda.so.1")
    library(out, "libnccl.so.2", [HERE / "libnccl.cc"], "-l:libcuda.so.1")
    unity = out / "libtorch_cuda.cc"
    unity.write_text("".join(f'#include "{name}"\n' for name in UNITY))
    include = torch / "include"
    library(out, "libtorch_cuda.so", [unity], f"-L{torch / 'lib'}", "-l:libnccl.so.2", "-l:libcudart.so.12", "-l:libcuda.so.1", "-ltorch_cpu", "-ltorch_python",
            "-lc10", flags=("-w", "-DFMT_HEADER_ONLY", f"-I{include}", f"-I{include / 'torch' / 'csrc' / 'api' / 'include'}", f"-I{sysconfig.get_paths()['include']}"))
    unity.unlink()


def folder():
    text = b"".join(path.read_bytes() for path in sorted(HERE.iterdir()) if path.suffix in (".cc", ".h") or path.name == "build.py")
    version = (torch_folder() / "version.py").read_bytes()
    name = "simulated-device-" + hashlib.sha256(text + version + sysconfig.get_python_version().encode()).hexdigest()[:12]
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "ddpdoctor"
    if not (cache / name).exists():
        cache.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(prefix=".simulated-device-", dir=cache))
        try:
            compile_all(made)
            made.rename(cache / name)
        except OSError:  # another one was faster
            shutil.rmtree(made, ignore_errors=True)
    return cache / name


if __name__ == "__main__":
    print(folder())

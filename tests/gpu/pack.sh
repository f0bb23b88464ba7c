#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Builds ddpdoctor for a machine that has a GPU, nothing of ours and no network: build/gpu/carry has the program, its libraries except those
# of libc and libstdc++, the agent and, if CUPTI's headers are installed, its plugin. Copy that folder and tests/ there, and run:
#
#   DDPDOCTOR=build/gpu/carry/ddpdoctor RECORDINGS=FOLDER tests/gpu/run_single_gpu.sh
set -euo pipefail
cd "$(dirname "$0")/../.."
export CCACHE_NOHASHDIR=1 CCACHE_BASEDIR=$PWD

# An RPATH, not a RUNPATH: libdw searches for its own libraries there, too.
cmake --preset release -B build/gpu -DCMAKE_EXE_LINKER_FLAGS="-Wl,--disable-new-dtags,-rpath,'\$ORIGIN/lib'" >/dev/null
targets=(ddpdoctor ddpdoctor_agent)
grep -q libddpdoctor_cupti.so build/gpu/build.ninja && targets+=(ddpdoctor_cupti)
cmake --build build/gpu --target "${targets[@]}" -j2 >&2

carry=build/gpu/carry
rm -rf "$carry"
mkdir -p "$carry/lib"
cp build/gpu/ddpdoctor build/gpu/libddpdoctor_*.so "$carry"
strip "$carry/ddpdoctor"
ldd "$carry/ddpdoctor" | awk '$3 ~ /^\// {print $3}' | grep -vE '/(libc|libm|libstdc\+\+|libgcc_s|ld-linux[^/]*)\.so' | xargs -I{} cp -L {} "$carry/lib"
du -sh "$carry"

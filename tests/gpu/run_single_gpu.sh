#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The jobs of tests/agent/nccl_run_test.py with real NCCL: four ranks on one GPU. Skips, and says why, where there is none.
#
#   DDPDOCTOR=build/release/ddpdoctor tests/gpu/run_single_gpu.sh [pytest arguments]
#
# $NCCL_LIBRARY and $CUDART_LIBRARY name the two libraries; otherwise those of the wheels of $PYTHON (default python3) are taken.
# Several ranks on one GPU: NCCL refuses it unless each believes to be on a host of its own (NCCL_HOSTID); then they talk over sockets on lo,
# and kernels wait for their own proxy threads only, so that time-slicing is enough.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
python=${PYTHON:-python3}

skip() {
  echo "skipped: $1"
  exit 0
}

find_in_wheels() {
  "$python" - "$1" <<'END'
import glob, site, sys
folders = site.getsitepackages() + [site.getusersitepackages()]
found = [path for folder in folders for path in glob.glob(f"{folder}/nvidia/**/{sys.argv[1]}", recursive=True)]
print(found[0] if found else "")
END
}

command -v nvidia-smi >/dev/null || skip "no nvidia-smi: no GPU here"
nvidia-smi -L 2>/dev/null | grep -q '^GPU' || skip "nvidia-smi shows no GPU"
[ -x "${DDPDOCTOR:-}" ] || skip "\$DDPDOCTOR is not the program"
nccl=${NCCL_LIBRARY:-$(find_in_wheels 'libnccl.so.2')}
cudart=${CUDART_LIBRARY:-$(find_in_wheels 'libcudart.so.1[23]')}
[ -f "$nccl" ] || skip "no libnccl.so.2: set NCCL_LIBRARY"
[ -f "$cudart" ] || skip "no libcudart.so: set CUDART_LIBRARY"

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
ln -s "$(realpath "$nccl")" "$folder/libnccl.so.2"
ln -s "$(realpath "$cudart")" "$folder/libcudart.so.13"  # by this name, whichever version it is

export NCCL_LIBRARIES=$folder CUDA_VISIBLE_DEVICES=${CUDA_VISIBLE_DEVICES:-0}
export NCCL_NET=Socket NCCL_NET_PLUGIN=none NCCL_IB_DISABLE=1 NCCL_SOCKET_IFNAME==lo NCCL_P2P_DISABLE=1 NCCL_SHM_DISABLE=1 NCCL_NVLS_ENABLE=0
export NCCL_COLLNET_ENABLE=0 NCCL_MNNVL_ENABLE=0 NCCL_CUMEM_HOST_ENABLE=0 NCCL_NET_GDR_LEVEL=LOC NCCL_MAX_CTAS=2 NCCL_MIN_CTAS=1
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
echo "NCCL: $(realpath "$nccl")"
"$python" -m pytest -q -p no:cacheprovider "$here/../agent/nccl_run_test.py" "$@"

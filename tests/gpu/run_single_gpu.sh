#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The jobs of tests/agent/nccl_run_test.py with real NCCL: four ranks on one GPU. Skips, and says why, where there is none.
#
#   DDPDOCTOR=build/release/ddpdoctor tests/gpu/run_single_gpu.sh [pytest arguments]
#
# tests/gpu/pack.sh makes what a bare machine needs. $RECORDINGS: a folder for the recording and report of every job, and recordings.tar.gz
# of them all, from which goldens are taken. Takes some eight minutes: 30 s of every hanging job are the wait for the hang.
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
DDPDOCTOR=$(realpath "$DDPDOCTOR")
[ -f "$(dirname "$DDPDOCTOR")/libddpdoctor_agent.so" ] || skip "no libddpdoctor_agent.so beside \$DDPDOCTOR"
missing=$(ldd "$DDPDOCTOR" | awk '/not found/ {print $1}' | xargs)
[ -z "$missing" ] || skip "this machine lacks $missing: tests/gpu/pack.sh puts them beside the program"
"$python" -m pytest --version >/dev/null 2>&1 || skip "$python has no pytest"
nccl=${NCCL_LIBRARY:-$(find_in_wheels 'libnccl.so.2')}
cudart=${CUDART_LIBRARY:-$(find_in_wheels 'libcudart.so.1[23]')}
[ -f "$nccl" ] || skip "no libnccl.so.2: set NCCL_LIBRARY"
[ -f "$cudart" ] || skip "no libcudart.so: set CUDART_LIBRARY"

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
ln -s "$(realpath "$nccl")" "$folder/libnccl.so.2"
ln -s "$(realpath "$cudart")" "$folder/libcudart.so.13"  # by this name, whichever version it is

export DDPDOCTOR NCCL_LIBRARIES=$folder CUDA_VISIBLE_DEVICES=${CUDA_VISIBLE_DEVICES:-0}
export NCCL_NET=Socket NCCL_NET_PLUGIN=none NCCL_IB_DISABLE=1 NCCL_SOCKET_IFNAME==lo NCCL_P2P_DISABLE=1 NCCL_SHM_DISABLE=1 NCCL_NVLS_ENABLE=0
export NCCL_COLLNET_ENABLE=0 NCCL_MNNVL_ENABLE=0 NCCL_CUMEM_HOST_ENABLE=0 NCCL_NET_GDR_LEVEL=LOC NCCL_MAX_CTAS=2 NCCL_MIN_CTAS=1
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
echo "NCCL: $(realpath "$nccl")"

# Without us first: what NCCL itself cannot do here is no finding about ddpdoctor.
mkdir "$folder/ids"
for rank in 0 1 2 3; do
  NCCL_FOLDER=$folder NCCL_IDS=$folder/ids PYTHONPATH=$here/../doubles/nccl PYTHONDONTWRITEBYTECODE=1 RANK=$rank WORLD_SIZE=4 NCCL_HOSTID=host-$rank \
    NCCL_DEBUG=WARN timeout 120 "$python" -c "
import thin_nccl as n
world, stream, data = n.Communicator(), n.Stream(), n.buffer(1024)
world.all_reduce(data, 1024, 'float32', 'sum', stream)
stream.synchronize()
print('rank', world.rank, 'of', world.size, 'is through')" &
  ranks[rank]=$!
done
for rank in 0 1 2 3; do
  wait "${ranks[rank]}" || { echo "NCCL does not run four ranks on this GPU, with or without ddpdoctor: see above"; exit 1; }
done

status=0
if [ -n "${RECORDINGS:-}" ]; then
  RECORDINGS=$(mkdir -p "$RECORDINGS" && realpath "$RECORDINGS")
  export RECORDINGS
fi
"$python" -m pytest -q -p no:cacheprovider --durations=0 "$here/../agent/nccl_run_test.py" "$@" || status=$?
if [ -n "${RECORDINGS:-}" ]; then
  tar -C "$RECORDINGS" -czf "$RECORDINGS/recordings.tar.gz" --exclude recordings.tar.gz . && ls -l "$RECORDINGS/recordings.tar.gz"
fi
exit $status

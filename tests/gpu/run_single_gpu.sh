#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Real NCCL on one GPU: the jobs of tests/agent/nccl_run_test.py (four ranks, NCCL called directly) and those of tests/gpu/jobs (torch DDP
# over ProcessGroupNCCL, two or three ranks, under run and under attach, each with its healthy twin). Without a GPU it skips, and says why.
#
#   DDPDOCTOR=build/release/ddpdoctor tests/gpu/run_single_gpu.sh [--shard I/N] [--seconds S=520] [--backend gloo] [pytest arguments]
#
# --shard I/N     each N-th job only, starting with the I-th
# --seconds S     limit of the whole call: no job is started in the last 110 s of it; the table lists those that were left out
#   --backend gloo  a dry run without a GPU: the DDP jobs alone, over gloo
#   $RECORDINGS     a folder for every job's recording and report, results.txt (the table) and recordings.tar.gz (all of it: goldens are taken from it)
#   $AT_ONCE        jobs at one time where pytest-xdist is (default 4)
#   $HANG_TIMEOUT   seconds of --hang-timeout (default 30 for NCCL called directly, 12 for DDP)
#
# On a bare machine that gets this tree and what is carried along and ends a command after ten minutes (README of the `run` tool: one H200,
# python3 is 3.12 with torch 2.11.0+cu130, its NCCL, pytest and pytest-xdist; no wheels need to be carried):
#
#   before, here, in the checkout the session was started in:  tests/gpu/pack.sh          then `run` with carry = ["build/gpu/carry"], timeout_s = 600:
#   export DDPDOCTOR=build/gpu/carry/ddpdoctor RECORDINGS=/tmp/r; tests/gpu/run_single_gpu.sh --shard 1/2; cp /tmp/r/recordings.tar.gz /tmp/r/results.txt $OUT
#   export DDPDOCTOR=build/gpu/carry/ddpdoctor RECORDINGS=/tmp/r2; tests/gpu/run_single_gpu.sh --shard 2/2; cp /tmp/r2/recordings.tar.gz /tmp/r2/results.txt $OUT
#
# and one job again, with its output: … run_single_gpu.sh -k "attach-mismatched_op" -vv. Jobs that time out at once: AT_ONCE=1 and --shard 1/6 … 6/6.
# The zoo's own scripts over NCCL: tests/zoo/zoo.py NAME… --device cuda. What a call and a step cost: tests/gpu/measure.py.
#
# $NCCL_LIBRARY and $CUDART_LIBRARY name the libraries of the jobs without torch; otherwise those of the wheels of $PYTHON (default python3).
# Several ranks on one GPU: NCCL refuses it unless each believes to be on a host of its own (NCCL_HOSTID); then they talk over sockets on lo,
# and kernels wait for their own proxy threads only, so that time-slicing is enough.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
python=${PYTHON:-python3}
backend=nccl seconds=520
export GPU_SHARD=1/1
while [ $# -gt 0 ]; do
  case "$1" in
    --backend) backend=${2:-}; shift 2 ;;
    --shard) GPU_SHARD=${2:-}; shift 2 ;;
    --seconds) seconds=${2:-}; shift 2 ;;
    *) break ;;
  esac
done
[[ $backend =~ ^(nccl|gloo)$ && $GPU_SHARD =~ ^[1-9][0-9]*/[1-9][0-9]*$ && $seconds =~ ^[0-9]+$ ]] || { sed -n '6,13s/^# *//p' "$0" >&2; exit 2; }
export GPU_LAST_START=$((EPOCHSECONDS + seconds - 110)) DDP_BACKEND=$backend

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

if [ "$backend" = nccl ]; then
  command -v nvidia-smi >/dev/null || skip "no nvidia-smi: no GPU here"
  nvidia-smi -L 2>/dev/null | grep -q '^GPU' || skip "nvidia-smi shows no GPU"
fi
[ -x "${DDPDOCTOR:-}" ] || skip "\$DDPDOCTOR is not the program"
DDPDOCTOR=$(realpath "$DDPDOCTOR")
[ -f "$(dirname "$DDPDOCTOR")/libddpdoctor_agent.so" ] || skip "no libddpdoctor_agent.so beside \$DDPDOCTOR"
missing=$(ldd "$DDPDOCTOR" | awk '/not found/ {print $1}' | xargs)
[ -z "$missing" ] || skip "this machine lacks $missing: tests/gpu/pack.sh puts them beside the program"
"$python" -m pytest --version >/dev/null 2>&1 || skip "$python has no pytest"
export DDPDOCTOR PYTHONPATH=$here${PYTHONPATH:+:$PYTHONPATH} PYTHONDONTWRITEBYTECODE=1
tests=("$here/../agent/ddp_jobs_test.py")

# Four ranks without ddpdoctor: what NCCL itself cannot do here is not a failure of ddpdoctor.
try_nccl() {
  mkdir "$folder/ids"
  for rank in 0 1 2 3; do
    NCCL_FOLDER=$folder NCCL_IDS=$folder/ids PYTHONPATH=$here/../doubles/nccl RANK=$rank WORLD_SIZE=4 NCCL_HOSTID=host-$rank NCCL_DEBUG=WARN timeout 90 "$python" -c "
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
}

if [ "$backend" = nccl ]; then
  nccl=${NCCL_LIBRARY:-$(find_in_wheels 'libnccl.so.2')}
  cudart=${CUDART_LIBRARY:-$(find_in_wheels 'libcudart.so.1[23]')}
  [ -f "$nccl" ] || skip "no libnccl.so.2: set NCCL_LIBRARY"
  [ -f "$cudart" ] || skip "no libcudart.so: set CUDART_LIBRARY"
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
  ln -s "$(realpath "$nccl")" "$folder/libnccl.so.2"
  ln -s "$(realpath "$cudart")" "$folder/libcudart.so.13"  # by this name, whatever its version
  export NCCL_LIBRARIES=$folder CUDA_VISIBLE_DEVICES=${CUDA_VISIBLE_DEVICES:-0}
  export NCCL_NET=Socket NCCL_NET_PLUGIN=none NCCL_IB_DISABLE=1 NCCL_SOCKET_IFNAME==lo NCCL_P2P_DISABLE=1 NCCL_SHM_DISABLE=1 NCCL_NVLS_ENABLE=0
  export NCCL_COLLNET_ENABLE=0 NCCL_MNNVL_ENABLE=0 NCCL_CUMEM_HOST_ENABLE=0 NCCL_NET_GDR_LEVEL=LOC NCCL_MAX_CTAS=2 NCCL_MIN_CTAS=1
  nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
  echo "NCCL: $(realpath "$nccl")"
  try_nccl
  tests=("$here/../agent/nccl_run_test.py" "${tests[@]}")
fi

if [ -n "${RECORDINGS:-}" ]; then
  RECORDINGS=$(mkdir -p "$RECORDINGS" && realpath "$RECORDINGS")
  export RECORDINGS
fi
at_once=()
"$python" -c 'import xdist' 2>/dev/null && at_once=(-n "${AT_ONCE:-4}")
status=0
"$python" -m pytest -q -p no:cacheprovider -p gpu_session "${at_once[@]}" "${tests[@]}" "$@" || status=$?
if [ -n "${RECORDINGS:-}" ]; then
  rm -f "$RECORDINGS/recordings.tar.gz"
  tar -C "$RECORDINGS" -cz . >"$RECORDINGS.tar.gz" && mv "$RECORDINGS.tar.gz" "$RECORDINGS/recordings.tar.gz" && ls -l "$RECORDINGS/recordings.tar.gz"
fi
exit $status

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A hook of enroot: mounts the host's ddpdoctor, its program and its agent, read-only into each container (docs/multinode.md).
# Install it as root: install -m 755 60-ddpdoctor.sh /etc/enroot/hooks.d/
# DDPDOCTOR_PREFIX is where ddpdoctor is installed; without it, the prefix of the program in PATH. DDPDOCTOR_ENROOT=off leaves the container as it is.
# If the host has no ddpdoctor, the container starts without it: a hook that fails would stop it.
set -eu

say() { echo "60-ddpdoctor: $*" >&2; }

if [ "${DDPDOCTOR_ENROOT:-on}" = off ] || [ -z "${ENROOT_MOUNTS:-}" ]; then
  exit 0
fi
prefix="${DDPDOCTOR_PREFIX:-}"
if [ -z "$prefix" ]; then
  program="$(command -v ddpdoctor || true)"
  if [ -z "$program" ]; then
    exit 0
  fi
  prefix="$(dirname "$(dirname "$(readlink -f "$program")")")"
fi
case "$prefix" in
  *[[:space:]\\#\$]*) say "not mounted: the path '$prefix' has a space, a backslash, # or \$"; exit 0 ;;
  /*) ;;
  *) say "not mounted: the path '$prefix' is not absolute"; exit 0 ;;
esac
if [ ! -x "$prefix/bin/ddpdoctor" ]; then
  say "not mounted: $prefix/bin/ddpdoctor is not there"
  exit 0
fi
printf '%s /usr/local/bin/ddpdoctor none x-create=file,bind,ro,nosuid,nodev,private\n' "$prefix/bin/ddpdoctor" >>"$ENROOT_MOUNTS"
for folder in lib libexec; do  # a .deb and cmake --install use lib, a wheel libexec; the program searches both
  if [ -f "$prefix/$folder/ddpdoctor/libddpdoctor_agent.so" ]; then
    printf '%s /usr/local/%s/ddpdoctor none x-create=dir,bind,ro,nosuid,nodev,private\n' "$prefix/$folder/ddpdoctor" "$folder" >>"$ENROOT_MOUNTS"
  fi
done

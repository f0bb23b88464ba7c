#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Writes collector/stacks/python/offsets.cc to stdout from the headers of the given CPythons, oldest first:
#   generate_python_offsets.sh INCLUDE... > collector/stacks/python/offsets.cc
# INCLUDE is a folder with Python.h (…/include/python3.11); "A:B" adds B, for Debian's split pyconfig.h.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cat <<'HEAD'
// SPDX-License-Identifier: Apache-2.0
// Offsets of CPython's structures, data only. Written by tests/support/generate_python_offsets.sh:
// do not edit.
#include "collector/stacks/python/offsets.h"

#include <algorithm>
#include <array>

namespace ddpdoctor::stacks {

namespace {

// clang-format off
constexpr auto kLayouts = std::to_array<PythonLayout>({
HEAD
: >"$work/debug"
for include in "$@"; do
  flags=()
  for folder in ${include//:/ }; do
    flags+=("-I$folder" "-I$folder/internal")
  done
  gcc -w "${flags[@]}" "$here/generate_python_offsets.c" -o "$work/print"
  row=$("$work/print")
  printf '%s\n' "$row"
  if grep -q 'thread_frame' <<<"$row" && grep -q 'code_qualname' <<<"$row"; then
    "$work/print" debug >>"$work/debug"
  fi
done
cat <<'MIDDLE'
});

constexpr auto kDebugPositions = std::to_array<PythonLayout>({
MIDDLE
cat "$work/debug"
cat <<'TAIL'
});
// clang-format on

template <typename Rows>
const PythonLayout* row_of(const Rows& rows, std::int32_t version) {
  const auto found = std::ranges::find(rows, version, &PythonLayout::version);
  return found == rows.end() ? nullptr : &*found;
}

}  // namespace

std::span<const PythonLayout> python_layouts() {
  return kLayouts;
}

const PythonLayout* python_layout(std::int32_t version) {
  return row_of(kLayouts, version);
}

const PythonLayout* python_debug_positions(std::int32_t version) {
  return row_of(kDebugPositions, version);
}

}  // namespace ddpdoctor::stacks
TAIL

// SPDX-License-Identifier: Apache-2.0
// Offsets computed from the headers of 1.13.1 (Debian), 2.1.2, 2.4.1, 2.6.0, 2.7.1, 2.8.0, 2.10.0,
// 2.12.0 and 2.13.0 (wheels), compiled for x86-64; releases between two of equal layout have it,
// too. ReduceOp of 2.14 and 2.15 is that of 2.13.
#include "agent/c10d/torch_layout.h"

#include <cstdlib>

namespace ddpdoctor::agent {
namespace {

constexpr TorchLayout kRows[] = {
    {113, 113, 24, 40, false, 72, 168, 176}, {201, 201, 24, 40, false, 72, 168, 176},
    {204, 207, 16, 32, false, -1, -1, -1},   {208, 213, 16, 32, true, -1, -1, -1},
    {214, 215, 16, 32, false, -1, -1, -1},
};

}  // namespace

const TorchLayout* layout_of_torch(const char* version) {
  char* dot = nullptr;
  const unsigned long major = strtoul(version, &dot, 10);
  if (dot == version || *dot != '.' || major > 9) {
    return nullptr;
  }
  const unsigned long minor = strtoul(dot + 1, nullptr, 10);
  const int release = static_cast<int>(100 * major + (minor < 100 ? minor : 99));
  for (const TorchLayout& row : kRows) {
    if (row.first <= release && release <= row.last) {
      return &row;
    }
  }
  return nullptr;
}

}  // namespace ddpdoctor::agent

// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/nccl_reason.h"

#include <algorithm>

#include "base/text.h"
#include "collector/detectors/evidence/traceback_lines.h"

namespace ddpdoctor::detectors {

std::string nccl_reason(const LogStream& stream, std::size_t index) {
  constexpr std::size_t kMost = 3;
  std::string out;
  for (std::size_t i = index + 1; i < std::min(stream.size(), index + 1 + kMost); ++i) {
    const std::string_view line = base::trim(stream[i].text);
    if (line.empty() || line.starts_with('[') || begins_traceback(line)) {  // "[": of a logger
      break;
    }
    out += line == "Last error:" ? std::string() : "; " + std::string(line);
  }
  return out;
}

}  // namespace ddpdoctor::detectors

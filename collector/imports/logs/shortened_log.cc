// SPDX-License-Identifier: Apache-2.0
#include "collector/imports/logs/shortened_log.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/text.h"

namespace ddpdoctor::imports {
namespace {

/// A line that may show a cause; most of a very long log is loss values.
bool may_tell(std::string_view line) {
  constexpr std::array<std::string_view, 10> kWords = {
      "rror",     "Traceback", "  File \"", "xception", "signal",
      "Watchdog", "arrier",    "Caught",    "exit",     "mismatch"};
  return base::contains_any(line, kWords);
}

}  // namespace

std::string shortened(std::string text) {
  constexpr std::size_t kLongest = std::size_t{4} << 20U;  // bytes of a log that detectors read
  constexpr std::size_t kAround = 3;
  constexpr std::size_t kEnds = 100;  // lines at either end: they show whether the job continued
  if (text.size() <= kLongest) {
    return text;
  }
  const auto lines = base::split(text, '\n');
  std::string out;
  std::size_t written = 0;  // lines before this one are written
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (i >= kEnds && i + kEnds < lines.size() && !may_tell(lines[i])) {
      continue;
    }
    const std::size_t last = std::min(i + kAround, lines.size() - 1);
    for (std::size_t k = std::max(written, i - std::min(i, kAround)); k <= last; ++k) {
      out += lines[k];
      out += '\n';
    }
    written = std::max(written, last + 1);
  }
  if (out.size() <= kLongest) {
    return out;
  }
  return out.substr(0, out.rfind('\n', kLongest / 2) + 1) +
         out.substr(out.find('\n', out.size() - kLongest / 2) + 1);
}

}  // namespace ddpdoctor::imports

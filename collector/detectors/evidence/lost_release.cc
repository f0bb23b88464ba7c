// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/lost_release.h"

#include <algorithm>
#include <string>

#include "base/text.h"
#include "collector/detectors/paths/source_blocks.h"
#include "collector/program/questions/expressions.h"

namespace ddpdoctor::detectors {
namespace {

bool calls(std::string_view line, std::string_view lock, std::string_view method) {
  if (line.find(lock) == line.npos) {
    return false;
  }
  const std::string callee = std::string(lock) + "." + std::string(method);
  const auto all = program::calls_in(line);
  return std::any_of(all.begin(), all.end(),
                     [&callee](const program::Call& call) { return call.callee == callee; });
}

bool leaves(std::string_view code) {
  const std::string_view word = code.substr(0, code.find_first_of(" (;#"));
  return word == "return" || word == "raise";
}

}  // namespace

std::optional<int> leaves_without_release(const program::SourceText& lines, std::string_view lock) {
  for (auto taken = lines.begin(); taken != lines.end(); ++taken) {
    if (!calls(taken->second, lock, "acquire")) {
      continue;
    }
    const std::string function = function_around(lines, taken->first);
    std::optional<int> left;
    for (auto at = std::next(taken); at != lines.end(); ++at) {
      const std::string_view code = base::trim(at->second);
      if (function_around(lines, at->first) != function || code.starts_with("finally")) {
        break;
      }
      if (calls(code, lock, "release")) {
        if (left) {
          return left;
        }
        break;
      }
      left = left ? left : (leaves(code) ? std::optional(at->first) : std::nullopt);
    }
  }
  return std::nullopt;
}

}  // namespace ddpdoctor::detectors

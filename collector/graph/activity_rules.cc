// SPDX-License-Identifier: Apache-2.0
#include "collector/graph/activity_rules.h"

#include <algorithm>

namespace ddpdoctor::graph {
namespace {

bool matches(const ActivityRule& rule, const stacks::Frame& frame) {
  if (rule.match == Match::kPython) {
    if (frame.language != stacks::Language::kPython) {
      return false;
    }
    return (rule.function.empty() || plain_name(frame.function) == rule.function) &&
           (rule.file.empty() || frame.file.find(rule.file) != std::string::npos);
  }
  if (frame.language != stacks::Language::kNative) {
    return false;
  }
  if (rule.match == Match::kNativeExact) {
    return frame.function == rule.function;
  }
  return frame.function.find(rule.function) != std::string::npos;
}

// "pdb.py" must not be a piece of "mypdb.py"; pieces with a folder are specific enough.
bool at_border(const ActivityRule& rule, const stacks::Frame& frame) {
  if (rule.match != Match::kPython || rule.file.empty()) {
    return true;
  }
  const std::size_t at = frame.file.rfind(rule.file);
  return at == 0 || frame.file[at - 1] == '/' || frame.file[at - 1] == ' ' ||
         rule.file.starts_with("importlib");
}

}  // namespace

std::string_view plain_name(std::string_view qualified) {
  const std::size_t dot = qualified.rfind('.');
  return dot == std::string_view::npos ? qualified : qualified.substr(dot + 1);
}

const ActivityRule* deciding_rule(std::span<const stacks::Frame> frames, const stacks::Frame** at) {
  const ActivityRule* best = nullptr;
  for (const stacks::Frame& frame : frames) {
    for (const ActivityRule& rule : activity_rules()) {
      if ((best == nullptr || rule.weight > best->weight) && matches(rule, frame) &&
          at_border(rule, frame)) {
        best = &rule;
        *at = &frame;
      }
    }
  }
  return best;
}

}  // namespace ddpdoctor::graph

// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/partings/callee_origin.h"

#include <algorithm>
#include <utility>

#include "collector/detectors/partings/calls_at.h"
#include "collector/detectors/paths/source_blocks.h"

namespace ddpdoctor::detectors {
namespace {

using program::Node;
using program::NodeKind;
using program::Origin;
using program::Source;

constexpr std::size_t kMostOutward = 6;  // frames searched outwards for the origin of the receiver

}  // namespace

Origin origin_of_callee(const model::JobModel& job, model::CallSite at, Path callers, Node call) {
  Origin found;
  for (std::size_t i = 0; call && i < kMostOutward; ++i) {
    const auto& lines = lines_of(job, at.file);
    const Node callee = program::without_parentheses(call.field(program::Field::kFunction));
    const Node object =
        callee.is(NodeKind::kAttribute) ? callee.field(program::Field::kObject) : Node();
    for (const Node asked : {callee, object}) {
      Origin one =
          asked ? origin_of(job, lines,
                            {.line = at.line, .text = {}, .condition = asked.one_line()}, callers)
                : Origin{};
      if (one.source > found.source) {
        found = std::move(one);
      }
    }
    const bool known = found.source != Source::kUniform && found.source != Source::kUnknown;
    if (known || !is_of_receiver(lines, at.line, object) || callers.empty()) {
      return found;
    }
    const model::CallSite inner = at;
    at = callers.front();
    callers.erase(callers.begin());
    call = call_to(job, at, inner);
  }
  return found;
}

const program::OriginStep* choosing_step(const Origin& origin) {
  const auto& chain = origin.chain;
  const auto chooses = [](const program::OriginStep& one) { return one.chooses; };
  auto chose = std::find_if(chain.begin(), chain.end(), chooses);
  // A table is chosen by its key: use the line that chose the key.
  while (chose != chain.end() && std::next(chose) != chain.end() && chooses(*std::next(chose))) {
    ++chose;
  }
  if (chose == chain.end() && !chain.empty()) {
    chose = std::prev(chain.end());
  }
  return chose == chain.end() ? nullptr : &*chose;
}

}  // namespace ddpdoctor::detectors

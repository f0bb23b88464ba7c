// SPDX-License-Identifier: Apache-2.0
#include "collector/program/questions/reaching.h"

#include <vector>

#include "collector/program/flow/separation.h"
#include "collector/program/syntax/source_index.h"

namespace ddpdoctor::program {

std::optional<bool> result_leading_to(const SourceText& text, int line, std::string_view condition,
                                      int reached) {
  const SourceIndex& index = index_of(text);
  const Scope& scope = index.function_at(reached);
  const Flow& flow = flow_of(text, scope);
  const auto decision_of = [&flow](const Dependency& one) -> const Decision* {
    const Point& point = flow.graph.points()[one.decision];
    const Decision* decision =
        point.decision == kNone ? nullptr : &flow.graph.decisions()[point.decision];
    return decision != nullptr && decision->is_test() ? decision : nullptr;
  };
  const std::vector<Dependency> all = flow.dependence.of(flow.graph.points_at(reached));
  const Dependency* nearest = nullptr;
  bool both = false;
  // By the text first: of several tests on one line, it chooses the one that is meant.
  for (const bool by_text : {true, false}) {
    for (const Dependency& one : all) {
      const Decision* const decision = decision_of(one);
      if (decision == nullptr || (by_text ? decision->text != condition || decision->line > line
                                          : decision->line != line)) {
        continue;
      }
      if (nearest == nullptr) {
        nearest = &one;
      } else if (one.decision == nearest->decision && one.distance == nearest->distance) {
        both = both || one.way != nearest->way;  // farther ones are of the next iteration
      } else if (one.decision != nearest->decision && !by_text) {
        both = true;
      }
    }
    if (nearest != nullptr) {
      break;
    }
  }
  if (nearest == nullptr || both || (nearest->way != Way::kTrue && nearest->way != Way::kFalse)) {
    return std::nullopt;
  }
  return nearest->way == Way::kTrue;
}

}  // namespace ddpdoctor::program

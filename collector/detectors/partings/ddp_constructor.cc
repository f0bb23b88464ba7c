// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/partings/ddp_constructor.h"

#include <algorithm>
#include <cstdint>

namespace ddpdoctor::detectors {
namespace {

constexpr std::string_view kInteger = "int64";

bool has_one_element(const model::CollectiveCall& call) {
  return call.count ? *call.count == 1 : call.shape && *call.shape == std::vector<std::int64_t>{1};
}

/// The number of parameters: the first call of DDP's constructor.
bool tells_how_many(const model::CollectiveCall& call) {
  return call.operation == "all_gather" && call.dtype == kInteger && has_one_element(call);
}

}  // namespace

BuiltWith built_with(const graph::Examination& examination, const model::CollectiveCall& call) {
  const graph::Calls& calls = examination.history.calls(call.group, call.rank);
  auto at = std::find_if(calls.begin(), calls.end(), [&call](const model::CollectiveCall* one) {
    return one->sequence == call.sequence;
  });
  if (at == calls.end() || !call.call_site.known()) {
    return BuiltWith::kNothing;
  }
  const model::CollectiveCall* next = nullptr;
  for (std::int64_t sequence = call.sequence;; --at, --sequence) {
    const model::CollectiveCall& one = **at;
    if (one.sequence != sequence || graph::callers_of(one) != graph::callers_of(call)) {
      return BuiltWith::kNothing;
    }
    if (next != nullptr && tells_how_many(one)) {
      break;
    }
    if (one.operation != "broadcast" || at == calls.begin()) {
      return BuiltWith::kNothing;
    }
    next = &one;
  }
  if (next->dtype != kInteger) {
    return BuiltWith::kNothing;
  }
  return next->sequence == call.sequence ? BuiltWith::kShapes : BuiltWith::kValues;
}

bool is_between_models(const graph::Examination& examination, const graph::Divergence& divergence) {
  const bool of_contents = divergence.about == graph::Disagreement::kShape ||
                           divergence.about == graph::Disagreement::kDtype;
  return of_contents &&
         std::all_of(
             divergence.calls.begin(), divergence.calls.end(),
             [&](const graph::DivergentCall& side) {
               const model::CollectiveCall* call =
                   side.ranks.empty() ? nullptr
                                      : examination.history.at(divergence.group, side.ranks.front(),
                                                               divergence.sequence);
               return call != nullptr && built_with(examination, *call) != BuiltWith::kNothing;
             });
}

}  // namespace ddpdoctor::detectors

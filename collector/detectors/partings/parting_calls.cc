// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/partings/parting_calls.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "collector/detectors/evidence/ahead_of_device.h"
#include "collector/detectors/evidence/wording.h"

namespace ddpdoctor::detectors {
namespace {

using graph::Examination;

/// "call #9 of default_pg is all_gather on rank 0 and all_reduce on ranks 1-3 (recorded calls)".
bool add_disagreement(const Examination& examination, const Parting& parting, Finding& finding) {
  const model::CollectiveCall* odd = parting.odd.call;
  const model::CollectiveCall* rest = parting.rest.call;
  if (odd == nullptr || rest == nullptr || odd->sequence != rest->sequence ||
      odd->group != rest->group) {
    return false;
  }
  if (odd->operation == rest->operation) {
    if (!odd->call_site.known() || !rest->call_site.known() ||
        line_of(odd->call_site) == line_of(rest->call_site)) {
      return false;
    }
    finding.evidence.push_back(
        {.rank = std::nullopt,
         .text = fmt::format("{} was called at {} on {} and at {} on {} (recorded calls)",
                             call_name(examination.job, *odd), line_of(odd->call_site),
                             said(parting.odd.ranks), line_of(rest->call_site),
                             said(parting.rest.ranks))});
    return true;
  }
  finding.evidence.push_back(
      {.rank = std::nullopt,
       .text = fmt::format("call #{} of {} is {} on {} and {} on {} (recorded calls)",
                           odd->sequence, group_name(examination.job, odd->group), odd->operation,
                           said(parting.odd.ranks), rest->operation, said(parting.rest.ranks))});
  return true;
}

void add_recorded(const Examination& examination, const Side& side, Finding& finding) {
  if (side.call == nullptr) {
    return;
  }
  const model::CallSite& site = side.call->call_site;
  const bool listed = std::any_of(
      finding.locations.begin(), finding.locations.end(),
      [&site](const Location& one) { return one.file == site.file && one.line == site.line; });
  finding.evidence.push_back({.rank = side.ranks.front(),
                              .text = fmt::format("{} called {}{} (recorded {})", said(side.ranks),
                                                  call_name(examination.job, *side.call),
                                                  listed ? std::string() : placed(site),
                                                  side.ranks.size() == 1 ? "call" : "calls")});
}

/// Records show in which call a device is stuck; its host may be some lines further.
void add_hosts_ahead(const Examination& examination, const Side& side, Finding& finding) {
  const graph::Standing* standing = side.call == nullptr ? nullptr : side.standing;
  const std::string text =
      standing == nullptr ? std::string() : ahead_of_device(examination, *standing);
  if (!text.empty()) {
    finding.evidence.push_back(
        {.rank = standing->rank,
         .text = fmt::format("the GPU of rank {} is waiting in {} #{}{}", standing->rank,
                             standing->call->operation, *standing->call->sequence, text)});
  }
}

}  // namespace

void add_calls(const Examination& examination, const Parting& parting, Finding& finding) {
  if (!add_disagreement(examination, parting, finding)) {
    add_recorded(examination, parting.odd, finding);
    add_recorded(examination, parting.rest, finding);
  }
  add_hosts_ahead(examination, parting.rest, finding);
}

}  // namespace ddpdoctor::detectors

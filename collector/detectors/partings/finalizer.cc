// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/partings/finalizer.h"

#include <algorithm>

#include <fmt/format.h>

#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/program/questions/expressions.h"

namespace ddpdoctor::detectors {
namespace {

/// The user's `__del__` below which the side makes its call; nullptr if there is none.
const model::CallSite* finalizer_of(const Side& side) {
  const auto found = std::find_if(
      side.path.begin(), side.path.end(),
      [](const model::CallSite& site) { return program::last_name(site.function) == "__del__"; });
  return side.calls() && found != side.path.end() ? &*found : nullptr;
}

}  // namespace

bool one_is_in_a_finalizer(const Parting& parting) {
  return (finalizer_of(parting.odd) == nullptr) != (finalizer_of(parting.rest) == nullptr);
}

bool read_finalizer(Explanation& explanation) {
  if (!one_is_in_a_finalizer(explanation.parting)) {
    return false;
  }
  explanation.cause = Cause::kDivergent;
  return true;
}

void tell_finalizer(const Explanation& explanation, Finding& finding) {
  const Parting& parting = explanation.parting;
  const bool of_odd = finalizer_of(parting.odd) != nullptr;
  const Side& freed = of_odd ? parting.odd : parting.rest;
  const Side& holds = of_odd ? parting.rest : parting.odd;
  const model::CallSite& finalizer = *finalizer_of(freed);
  finding.confidence = at_most(finding.confidence, Confidence::kLikely);
  if (parting.tie) {  // it is unknown which side keeps or frees its object at the wrong time
    finding.culprits = {};
    finding.waiting = parting.odd.ranks.united(parting.rest.ranks);
  }
  finding.summary = fmt::format(
      "{} {} in {} of {} ({}), which Python calls when it frees the object; {} {} not freed {} and "
      "{} {}",
      said(freed.ranks), is_or_are(freed.ranks), freed.operation, finalizer.function,
      line_of(finalizer), said(holds.ranks), holds.ranks.size() == 1 ? "has" : "have",
      holds.ranks.size() == 1 ? "its own" : "theirs", is_or_are(holds.ranks),
      holds.calls() ? fmt::format("in {}{}", holds.operation, placed(holds.site()))
                    : std::string("elsewhere"));
  finding.fix = fmt::format(
      "Make the call in a method that every rank calls at one point of the program, not in {}. How "
      "long an object lives depends on who refers to it: a kept exception and its traceback, or a "
      "cycle that waits for the garbage collector.",
      finalizer.function);
}

}  // namespace ddpdoctor::detectors

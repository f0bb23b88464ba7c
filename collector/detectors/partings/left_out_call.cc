// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/partings/left_out_call.h"

#include <fmt/format.h>

#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/detectors/partings/parting_words.h"

namespace ddpdoctor::detectors {

void tell_left_out(const graph::Examination& examination, const Explanation& explanation,
                   Finding& finding) {
  const Parting& parting = explanation.parting;
  finding.confidence = at_most(finding.confidence, Confidence::kLikely);
  finding.summary =
      fmt::format("{} left out {}{} and {} in {}, which followed it in earlier steps; {}",
                  said(parting.odd.ranks), waiting_call(examination, explanation),
                  placed(parting.rest.site()), is_or_are(parting.odd.ranks),
                  odd_place(examination, explanation), rest_waits(examination, explanation));
  finding.fix = fmt::format(
      "Print the values that lead to {} (the batch, options, flags) on {} and on {}, and compare "
      "them.",
      line_of(parting.rest.site()), said(parting.odd.ranks), said(parting.rest.ranks));
}

}  // namespace ddpdoctor::detectors

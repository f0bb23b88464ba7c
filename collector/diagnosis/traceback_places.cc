// SPDX-License-Identifier: Apache-2.0
#include "collector/diagnosis/traceback_places.h"

#include <algorithm>
#include <map>
#include <string>

#include "collector/detectors/evidence/tracebacks.h"
#include "collector/detectors/evidence/wording.h"

namespace ddpdoctor::diagnosis {
namespace {

/// The lines at which logs show the ranks of a finding; without ranks, the only line.
void add_places_of_tracebacks(const std::vector<detectors::Traceback>& all,
                              detectors::Finding& finding) {
  const model::RankSet ranks =
      finding.culprits.empty() ? finding.waiting : finding.culprits.united(finding.waiting);
  std::map<model::CallSite, model::RankSet> places;
  for (const detectors::Traceback& one : all) {
    const bool of_ranks = one.rank && ranks.contains(*one.rank);
    if (one.place.known() && !one.of_launcher && (of_ranks || all.size() == 1)) {
      places[one.place] =
          places[one.place].united(one.rank ? model::RankSet{*one.rank} : model::RankSet{});
    }
  }
  for (const auto& [place, there] : places) {
    finding.locations.push_back(detectors::location(
        place, there,
        there.empty() ? std::string("the log ends here")
                      : detectors::ranks_do(there, "raised here", "raised here")));
  }
}

}  // namespace

void tell_places_of_tracebacks(std::vector<Judged>& findings,
                               const graph::Examination& examination) {
  const bool lacking = std::any_of(findings.begin(), findings.end(), [](const Judged& judged) {
    return judged.finding.locations.empty();
  });
  const auto all =
      lacking ? detectors::tracebacks(examination.job) : std::vector<detectors::Traceback>{};
  for (Judged& judged : findings) {
    if (judged.finding.locations.empty() &&
        judged.detector->specificity != detectors::kSaysNothing) {
      add_places_of_tracebacks(all, judged.finding);
    }
  }
}

}  // namespace ddpdoctor::diagnosis

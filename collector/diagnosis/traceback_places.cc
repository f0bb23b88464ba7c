// SPDX-License-Identifier: Apache-2.0
#include "collector/diagnosis/traceback_places.h"

#include <algorithm>
#include <map>
#include <string>

#include "collector/detectors/evidence/tracebacks.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/model/questions.h"

namespace ddpdoctor::diagnosis {
namespace {

/// Without those whose line is a library's, if another one has a line of the user's.
std::vector<detectors::Traceback> of_users(std::vector<detectors::Traceback> all) {
  const auto has_line = [](const detectors::Traceback& one) {
    return one.place.known() && model::is_user_file(one.place.file);
  };
  if (std::any_of(all.begin(), all.end(), has_line)) {
    std::erase_if(all, [&](const detectors::Traceback& one) { return !has_line(one); });
  }
  return all;
}

/// All that have a line have the same one.
bool lead_to_one_line(const std::vector<detectors::Traceback>& all) {
  const auto known = [](const detectors::Traceback& one) { return one.place.known(); };
  const auto first = std::find_if(all.begin(), all.end(), known);
  return std::all_of(first, all.end(), [&](const detectors::Traceback& one) {
    return !known(one) || one.place == first->place;
  });
}

/// The lines of libraries that raised, if no traceback has a line of the user's.
void add_libraries(const std::vector<detectors::Traceback>& all,
                   std::map<model::CallSite, model::RankSet>& places) {
  constexpr std::size_t kMost = 2;
  const bool users =
      std::any_of(all.begin(), all.end(), [](const auto& one) { return one.place.known(); });
  for (const detectors::Traceback& one : all) {
    if (!users && one.raiser.known() && places.size() < kMost) {
      places[one.raiser] =
          places[one.raiser].united(one.rank ? model::RankSet{*one.rank} : model::RankSet{});
    }
  }
}

/// The lines at which logs show the ranks of a finding; without ranks, the only line.
void add_places_of_tracebacks(const std::vector<detectors::Traceback>& all,
                              detectors::Finding& finding) {
  const model::RankSet ranks =
      finding.culprits.empty() ? finding.waiting : finding.culprits.united(finding.waiting);
  const bool only = lead_to_one_line(all);
  std::map<model::CallSite, model::RankSet> places;
  for (const detectors::Traceback& one : all) {
    const bool of_ranks = one.rank && ranks.contains(*one.rank);
    if (one.place.known() && !one.of_launcher && (of_ranks || only)) {
      places[one.place] =
          places[one.place].united(one.rank ? model::RankSet{*one.rank} : model::RankSet{});
    }
  }
  if (places.empty()) {
    add_libraries(all, places);
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
  auto all = lacking ? of_users(detectors::tracebacks(examination.job))
                     : std::vector<detectors::Traceback>{};
  if (lacking && all.empty()) {
    all = detectors::tracebacks_of_launchers(examination.job);
  }
  for (Judged& judged : findings) {
    if (judged.finding.locations.empty() && judged.specificity() != detectors::kSaysNothing) {
      add_places_of_tracebacks(all, judged.finding);
    }
  }
}

}  // namespace ddpdoctor::diagnosis

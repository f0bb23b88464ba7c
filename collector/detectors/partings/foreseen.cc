// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/partings/foreseen.h"

#include <charconv>
#include <string>

#include <fmt/format.h>

#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/detectors/partings/uneven_ahead.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {
namespace {

model::RankSet ranks_of(const model::Fact& fact) {
  model::RankSet out;
  for (const std::string& text : fact.list("ranks")) {
    model::Rank rank = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), rank);
    if (error == std::errc() && end == text.data() + text.size()) {
      out.insert(rank);
    }
  }
  return out;
}

/// The observed part of a warning, without its forecast: the text before the first "; ".
std::string seen_in(const model::Fact& fact) {
  const std::string said = fact.text("summary").value_or("");
  return said.substr(0, said.find("; "));
}

Finding finding_of(const graph::Examination& examination, const model::Fact& fact,
                   const Forsaken& call) {
  Finding finding;
  finding.kind = "uneven-inputs";
  finding.confidence = Confidence::kCertain;  // both the lengths and the calls were observed
  finding.culprits = call.missing;
  finding.waiting = call.ranks;
  const std::string name = call_name(examination.job, call.operation, call.group, call.sequence);
  finding.summary = fmt::format("{}; {} waited in {} until the job failed", seen_in(fact),
                                said(call.ranks), name);
  finding.locations.push_back(location({.file = fact.text("file").value_or(""),
                                        .line = static_cast<int>(fact.number("line").value_or(0)),
                                        .function = fact.text("function").value_or("")},
                                       call.missing, "this loop ended earlier here"));
  const model::CollectiveCall* last =
      examination.history.at(call.group, call.ranks.front(), call.sequence);
  if (last != nullptr && last->call_site.known()) {
    finding.locations.push_back(
        location(last->call_site, call.ranks,
                 fmt::format("{} waited here, in {}", said(call.ranks), call.operation)));
  }
  finding.evidence = {
      {.rank = std::nullopt, .text = "the lengths of the loops were read while the job ran"},
      {.rank = std::nullopt,
       .text = fmt::format("{} never called {} (recorded calls)", said(call.missing), name)}};
  finding.fix = kEqualSteps;
  return finding;
}

}  // namespace

std::optional<Finding> foreseen_uneven(const graph::Examination& examination) {
  if (!examination.job.ended) {
    return std::nullopt;
  }
  for (const model::Fact* fact : model::facts(examination.job, "foreseen")) {
    const model::RankSet shorter = ranks_of(*fact);
    for (const Forsaken& call : forsaken_calls(examination)) {
      if (fact->text("of") == "uneven-inputs" && !call.missing.empty() && !call.ranks.empty() &&
          call.missing.minus(shorter).empty()) {
        return finding_of(examination, *fact, call);
      }
    }
  }
  return std::nullopt;
}

}  // namespace ddpdoctor::detectors

// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/recorded_place.h"

#include <algorithm>

#include "collector/detectors/evidence/processes.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {
namespace {

bool called_later(const model::JobModel& job, model::Rank rank, double time) {
  return std::any_of(job.collectives.begin(), job.collectives.end(),
                     [&](const model::CollectiveCall& call) {
                       return call.rank == rank && call.time.value_or(0) > time;
                     });
}

}  // namespace

model::CallSite recorded_place(const model::Fact& fact) {
  const auto file = fact.text("file");
  return file ? model::CallSite{*file, static_cast<int>(fact.number("line").value_or(0)),
                                fact.text("function").value_or("")}
              : model::CallSite{};
}

std::optional<Suspect> suspect_of(const graph::Examination& examination, const model::Fact& fact) {
  const model::Process* process = fact.pid ? model::process(examination.job, *fact.pid) : nullptr;
  if (process == nullptr) {
    return std::nullopt;
  }
  Suspect suspect = suspect_in(examination, *process, model::main_thread(*process));
  const auto time = fact.number("time");
  if (suspect.rank && time && called_later(examination.job, *suspect.rank, *time)) {
    return std::nullopt;
  }
  if (const model::CallSite place = recorded_place(fact); place.known()) {
    suspect.place = place;
  }
  suspect.confidence = examination.job.progress == model::Progress::kMoving ? Confidence::kPossible
                                                                            : Confidence::kLikely;
  return suspect;
}

}  // namespace ddpdoctor::detectors

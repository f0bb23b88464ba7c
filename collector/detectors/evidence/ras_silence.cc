// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/ras_silence.h"

#include <map>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {

std::string SilentRank::process() const {
  if (!pid) {
    return "its process";
  }
  return host.empty() ? fmt::format("process {}", *pid)
                      : fmt::format("process {} on {}", *pid, base::printable(host));
}

std::vector<SilentRank> silent_for_ras(const model::JobModel& job) {
  std::map<model::Rank, SilentRank> found;
  for (const model::Fact* fact : model::facts(job, "nccl-ras")) {
    const auto dead = fact->flag("considered_dead");
    if (dead && fact->rank && model::rank_process(job, *fact->rank) == nullptr) {
      found[*fact->rank] = {.rank = *fact->rank,
                            .considered_dead = *dead,
                            .pid = fact->pid,
                            .host = fact->text("host").value_or("")};
    }
  }
  std::vector<SilentRank> out;
  for (auto& [rank, silent] : found) {
    out.push_back(std::move(silent));
  }
  return out;
}

}  // namespace ddpdoctor::detectors

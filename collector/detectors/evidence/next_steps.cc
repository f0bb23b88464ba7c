// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/next_steps.h"

#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {

std::string next_steps(const graph::Examination& examination, bool ask_nccl) {
  std::vector<std::string> steps;
  const model::RankSet unseen = unobserved_ranks(examination);
  if (!unseen.empty()) {
    steps.push_back(
        fmt::format("Run `ddpdoctor attach PID` as the job's user or as root on the {} of {}.",
                    unseen.size() == 1 ? "node" : "nodes", said(unseen)));
  }
  const bool only_logs = model::latest(examination.job) == nullptr && !examination.job.logs.empty();
  if (!examination.still() && !only_logs) {
    steps.emplace_back(
        "Capture the stacks again after 10 s and pass both captures to `ddpdoctor report`.");
  }
  if (only_logs && examination.history.empty()) {
    steps.emplace_back(
        "While the job hangs, run `ddpdoctor attach PID`: it reads the stacks of all processes.");
  }
  const bool recorded = examination.job.history_complete;  // nothing was called yet
  if (examination.history.empty() && !recorded) {
    steps.emplace_back(
        "Start the next run with `ddpdoctor run -- …`, or set TORCH_FR_BUFFER_SIZE=2000 in it and "
        "pass its flight-recorder dumps to `ddpdoctor report`.");
  }
  if (ask_nccl) {
    steps.emplace_back("Run `ncclras` on a node (NCCL 2.24 or later): it names the rank behind.");
  }
  if (steps.empty()) {
    steps.emplace_back(
        recorded ? "Compare the output and the command line of the ranks."
                 : "Start the next run with `ddpdoctor run -- …`: it records every call.");
  }
  return fmt::format("{}", fmt::join(steps, " "));
}

}  // namespace ddpdoctor::detectors

// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/ddp_in_use.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {
namespace {

constexpr std::string_view kFile = "torch/nn/parallel/distributed.py";

bool in_ddp(const graph::Standing& standing) {
  using enum graph::Activity;
  return standing.activity == kDdpBackward || standing.activity == kDdpForward ||
         standing.activity == kDdpConstructor;
}

/// "model = DDP(model)" in a user's file; imports and comments do not count.
std::optional<Evidence> wrapped_in_source(const model::JobModel& job) {
  for (const auto& [file, lines] : job.sources) {
    for (const auto& [number, text] : lines) {
      const std::string_view line = base::trim(text);
      const bool wraps =
          line.find("DistributedDataParallel(") != line.npos || line.find("DDP(") != line.npos;
      if (wraps && !line.starts_with('#') && model::is_user_file(file)) {
        return Evidence{.rank = {},
                        .text = fmt::format("{}:{} wraps a model in DistributedDataParallel",
                                            base::file_name(file), number)};
      }
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<Evidence> ddp_in_use(const graph::Examination& examination) {
  const model::JobModel& job = examination.job;
  for (const graph::Standing& standing : examination.standings) {
    if (in_ddp(standing)) {
      return Evidence{
          .rank = standing.rank,
          .text = fmt::format("stack: rank {} is in DistributedDataParallel now", standing.rank)};
    }
  }
  if (const auto reducers = model::facts(job, "reducer"); !reducers.empty()) {
    return Evidence{.rank = reducers.front()->rank,
                    .text = "the agent recorded a reducer of DistributedDataParallel"};
  }
  if (auto source = wrapped_in_source(job)) {
    return source;
  }
  const bool named = std::any_of(job.logs.begin(), job.logs.end(), [](const model::Log& log) {
    return log.text.find(kFile) != std::string::npos;
  });
  return named ? std::optional(Evidence{
                     .rank = {},
                     .text = "log: a traceback of the job passes through DistributedDataParallel"})
               : std::nullopt;
}

}  // namespace ddpdoctor::detectors

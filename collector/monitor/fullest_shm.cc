// SPDX-License-Identifier: Apache-2.0
#include "collector/monitor/fullest_shm.h"

#include <algorithm>
#include <csignal>

#include <sys/statvfs.h>

#include "collector/model/questions.h"

namespace ddpdoctor::monitor {
namespace {

bool died_of_bus_error(const model::JobModel& job) {
  const model::Observation* now = model::latest(job);
  const bool seen =
      now != nullptr &&
      std::any_of(now->processes.begin(), now->processes.end(), [](const model::Process& process) {
        return process.exit && process.exit->signal == SIGBUS;
      });
  const auto exits = model::facts(job, "exit");
  return seen || std::any_of(exits.begin(), exits.end(), [](const model::Fact* fact) {
           return fact->number("signal") == SIGBUS;
         });
}

}  // namespace

void FullestShm::look() {
  struct statvfs status{};
  if (::statvfs(folder_.c_str(), &status) != 0 || status.f_blocks == 0) {
    return;
  }
  const auto block = static_cast<std::int64_t>(status.f_frsize);
  const std::int64_t free = static_cast<std::int64_t>(status.f_bavail) * block;
  if (total_ == 0 || free < free_) {
    total_ = static_cast<std::int64_t>(status.f_blocks) * block;
    free_ = free;
  }
}

std::optional<model::Fact> FullestShm::fact() const {
  if (total_ == 0) {
    return std::nullopt;
  }
  return model::Fact{.rank = std::nullopt,
                     .pid = std::nullopt,
                     .kind = "shm-usage",
                     .fields = {{"path", folder_},
                                {"bytes_total", total_},
                                {"bytes_used", total_ - free_},
                                {"peak", true}}};
}

void add_fullest_shm(const FullestShm& shm, model::JobModel& job) {
  if (auto fact = shm.fact(); fact && died_of_bus_error(job)) {
    job.facts.push_back(std::move(*fact));
  }
}

}  // namespace ddpdoctor::monitor

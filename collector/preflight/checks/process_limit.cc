// SPDX-License-Identifier: Apache-2.0
// How many processes and threads may exist: pids.max of the cgroup and ulimit -u. Above it, a fork
// or a new thread fails with "Resource temporarily unavailable".
#include <algorithm>

#include <fmt/format.h>

#include "collector/preflight/check.h"

namespace ddpdoctor::preflight::process_limit {
namespace {

constexpr std::uint64_t kThreadsOfARank =
    40;  // gloo or NCCL, autograd, the pin-memory and watchdog threads
constexpr std::uint64_t kThreadsOfAWorker = 4;

std::uint64_t needed(const Setting& setting) {
  const auto ranks = static_cast<std::uint64_t>(setting.ranks());
  const auto workers = static_cast<std::uint64_t>(setting.plan.workers.value_or(0));
  const auto cpus = static_cast<std::uint64_t>(std::max(1, setting.cpus()));
  const std::uint64_t team = setting.variable("OMP_NUM_THREADS") ? 1 : cpus;
  return ranks * (kThreadsOfARank + team + workers * kThreadsOfAWorker);
}

Remarks look(const Setting& setting) {
  const std::uint64_t need = needed(setting);
  Remarks remarks;
  if (const auto group = setting.cgroup("pids.max", "pids.current")) {
    const std::uint64_t used = group->used.value_or(0);
    const bool breaks = used + need > group->limit;
    remarks.push_back(
        {.level = breaks ? Level::kBreaks : Level::kOk,
         .what = fmt::format("{} of {} processes and threads used in {}; the job needs about {}",
                             used, group->limit, group->path, need),
         .fix =
             breaks ? "docker run --pids-limit, Kubernetes podPidsLimit, systemd TasksMax=" : ""});
  }
  const auto limit = setting.limit("Max processes");
  if (limit && limit->soft && *limit->soft < need) {
    remarks.push_back(
        {.level = Level::kBreaks,
         .what = fmt::format(
             "{} processes and threads of this user (ulimit -u); the job needs about {}",
             *limit->soft, need),
         .fix = "ulimit -u unlimited, or /etc/security/limits.conf"});
  }
  if (remarks.empty()) {
    remarks.push_back({.level = Level::kOk, .what = "no limit is too low", .fix = {}});
  }
  return remarks;
}

}  // namespace

extern const Check check;
const Check check{.name = "process-limit", .title = "Limit of processes and threads", .look = look};

}  // namespace ddpdoctor::preflight::process_limit

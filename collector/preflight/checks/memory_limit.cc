// SPDX-License-Identifier: Apache-2.0
// The memory limit of the container or slice: a process that exceeds it is killed by signal 9,
// without a Python message. /dev/shm counts, too.
#include <fmt/format.h>

#include "base/text.h"
#include "collector/preflight/check.h"

namespace ddpdoctor::preflight::memory_limit {
namespace {

constexpr double kOfAProcess =
    400.0 * 1024 * 1024;  // bytes; torch imported, without a model; forked workers share most of it
constexpr double kOfAWorker = 100.0 * 1024 * 1024;

Remarks look(const Setting& setting) {
  const auto group = setting.cgroup("memory.max", "memory.current");
  if (!group) {
    return {{.level = Level::kOk, .what = "no memory limit of a cgroup", .fix = {}}};
  }
  const double limit = static_cast<double>(group->limit);
  const double left = limit - static_cast<double>(group->used.value_or(0));
  const double workers = setting.plan.workers.value_or(0);
  const double batches = workers * 3 * setting.plan.batch_bytes.value_or(0);
  const double need = setting.ranks() * (kOfAProcess + workers * kOfAWorker + batches);
  // Caches count as used but are reclaimed, so only the limit itself decides what fails.
  const std::string what =
      fmt::format("{} of {} allowed by {}; {} ranks need at least {}", base::bytes(left),
                  base::bytes(limit), group->path, setting.ranks(), base::bytes(need));
  const Level level = need > limit ? Level::kBreaks : need > left ? Level::kWarning : Level::kOk;
  return {{.level = level,
           .what = what,
           .fix = level == Level::kOk ? ""
                                      : "raise the limit (docker run -m, Kubernetes "
                                        "resources.limits.memory, Slurm --mem), or fewer workers"}};
}

}  // namespace

extern const Check check;
const Check check{.name = "memory-limit", .title = "Memory limit of the container", .look = look};

}  // namespace ddpdoctor::preflight::memory_limit

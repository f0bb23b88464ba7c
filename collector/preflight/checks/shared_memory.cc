// SPDX-License-Identifier: Apache-2.0
// Compares /dev/shm with what the DataLoader workers will store there: every batch in transfer from
// a worker to its rank. When it is full, a worker is killed by SIGBUS ("Bus error").
#include <fmt/format.h>

#include "base/text.h"
#include "collector/preflight/check.h"

namespace ddpdoctor::preflight::shared_memory {
namespace {

constexpr double kPrefetch = 2;  // torch's default prefetch_factor: batches in transfer per worker
constexpr double kDockersDefault = 64.0 * 1024 * 1024;
constexpr double kFull = 0.05;  // share of the whole that is left free
constexpr std::string_view kLarger =
    "docker run --ipc=host or --shm-size=8g; Kubernetes: an emptyDir with medium: Memory at "
    "/dev/shm; on the machine itself: mount -o remount,size=8G /dev/shm";

Remarks judge(const Setting& setting, double total, double free) {
  const int workers = setting.plan.workers.value_or(0);
  const double carriers = static_cast<double>(workers) * setting.ranks();
  const std::string size =
      fmt::format("/dev/shm: {} free of {}", base::bytes(free), base::bytes(total));
  if (setting.plan.batch_bytes && workers > 0) {
    const double need = carriers * (kPrefetch + 1) * *setting.plan.batch_bytes;
    const std::string sum =
        fmt::format("{}; {} rank{} × {} workers × {} batches of {} need {}", size, setting.ranks(),
                    setting.ranks() == 1 ? "" : "s", workers, kPrefetch + 1,
                    base::bytes(*setting.plan.batch_bytes), base::bytes(need));
    return {{.level = need > free ? Level::kBreaks : Level::kOk,
             .what = sum,
             .fix = need > free
                        ? fmt::format("{}; or fewer workers, or a smaller prefetch_factor", kLarger)
                        : ""}};
  }
  if (free < kFull * total) {
    return {{.level = workers > 0 ? Level::kBreaks : Level::kWarning,
             .what = size + ": it is full",
             .fix = "ddpdoctor clean lists what dead jobs left there"}};
  }
  if (total <= kDockersDefault && setting.plan.workers != 0) {
    return {{.level = Level::kWarning,
             .what = size + ": Docker's default, too small for most DataLoader workers",
             .fix = std::string(kLarger)}};
  }
  return {{.level = Level::kOk, .what = size, .fix = {}}};
}

Remarks look(const Setting& setting) {
  const auto space = setting.space("/dev/shm");
  if (!space || space->total == 0) {
    return {{.level = setting.plan.workers.value_or(0) > 0 ? Level::kBreaks : Level::kWarning,
             .what = "/dev/shm is not there: DataLoader workers and NCCL cannot share memory",
             .fix = "mount -t tmpfs tmpfs /dev/shm"}};
  }
  return judge(setting, static_cast<double>(space->total), static_cast<double>(space->free));
}

}  // namespace

extern const Check check;
const Check check{.name = "shared-memory", .title = "Shared memory for batches", .look = look};

}  // namespace ddpdoctor::preflight::shared_memory

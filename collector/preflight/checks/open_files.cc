// SPDX-License-Identifier: Apache-2.0
// Compares the limit of open files with the tensors in transfer: with the default sharing strategy,
// each tensor is a descriptor in the worker and in the rank ("received 0 items of ancdata").
#include <fmt/format.h>

#include "collector/preflight/check.h"

namespace ddpdoctor::preflight::open_files {
namespace {

constexpr std::uint64_t kOfAProcess =
    200;  // libraries, sockets to the other ranks, pipes, data files
constexpr std::uint64_t kOfAWorker =
    30;  // two queues, an event, and batches of a few tensors in transfer
constexpr std::uint64_t kUsual = 1024;        // a lower limit is probably a mistake
constexpr std::uint64_t kComfortable = 4096;  // samples that are lists of tensors need a multiple

Remarks look(const Setting& setting) {
  const auto limit = setting.limit("Max open files");
  if (!limit) {
    return {{.level = Level::kUnknown,
             .what = "unknown: /proc/self/limits does not list it",
             .fix = {}}};
  }
  if (!limit->soft) {
    return {{.level = Level::kOk, .what = "no limit of open files", .fix = {}}};
  }
  const auto workers = static_cast<std::uint64_t>(setting.plan.workers.value_or(0));
  const std::uint64_t need = kOfAProcess + kOfAWorker * workers;
  const std::string hard = limit->hard ? fmt::format("{}", *limit->hard) : "unlimited";
  const std::string what =
      fmt::format("{} open files for each process (ulimit -n), hard limit {}", *limit->soft, hard);
  const bool may_raise = !limit->hard || *limit->hard >= kComfortable;
  const std::string fix =
      may_raise ? fmt::format("ulimit -n {} before the launcher", kComfortable)
                : "raise the hard limit: /etc/security/limits.conf, systemd LimitNOFILE=, or "
                  "docker run --ulimit nofile=65536";
  if (*limit->soft < need) {
    return {{.level = Level::kBreaks,
             .what = fmt::format("{}; a rank with {} workers needs about {}", what, workers, need),
             .fix = fix}};
  }
  const bool tight =
      setting.plan.workers ? workers > 0 && *limit->soft < 2 * need : *limit->soft < kUsual;
  return {{.level = tight ? Level::kWarning : Level::kOk, .what = what, .fix = tight ? fix : ""}};
}

}  // namespace

extern const Check check;
const Check check{.name = "open-files", .title = "Limit of open files", .look = look};

}  // namespace ddpdoctor::preflight::open_files

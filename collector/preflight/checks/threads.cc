// SPDX-License-Identifier: Apache-2.0
// Compares OMP_NUM_THREADS with CPUs and ranks: without it, every rank starts one thread per CPU,
// and a forked child of such a rank hangs in its first parallel region.
#include <fmt/format.h>

#include "collector/preflight/check.h"
#include "collector/sources/processes/proc_file.h"

namespace ddpdoctor::preflight::threads {
namespace {

Remarks judge_value(const Setting& setting, const std::string& value) {
  const int cpus = setting.cpus();
  // A list ("4,2") sets the levels of nested regions; the first level counts.
  const auto threads = sources::number<int>(std::string_view(value).substr(0, value.find(',')));
  if (!threads || *threads < 1) {
    return {
        {.level = Level::kWarning,
         .what = fmt::format("OMP_NUM_THREADS={} is not a number of threads and is ignored", value),
         .fix = "export OMP_NUM_THREADS=1"}};
  }
  const int all = *threads * setting.ranks();
  if (cpus > 0 && all > cpus && setting.ranks() > 1) {
    const int fair = std::max(1, cpus / setting.ranks());
    return {{.level = Level::kWarning,
             .what = fmt::format("OMP_NUM_THREADS={}: {} ranks start {} threads on {} CPUs",
                                 *threads, setting.ranks(), all, cpus),
             .fix = fmt::format("export OMP_NUM_THREADS={}", fair)}};
  }
  return {{.level = Level::kOk,
           .what = fmt::format("OMP_NUM_THREADS={}, {} CPUs, {} ranks", *threads, cpus,
                               setting.ranks()),
           .fix = {}}};
}

Remarks look(const Setting& setting) {
  if (const auto value = setting.variable("OMP_NUM_THREADS")) {
    return judge_value(setting, *value);
  }
  if (setting.plan.launcher == Launcher::kTorchrun && setting.ranks() > 1) {
    return {{.level = Level::kOk, .what = "torchrun sets OMP_NUM_THREADS=1", .fix = {}}};
  }
  if (setting.ranks() <= 1) {
    return {{.level = Level::kOk, .what = "OMP_NUM_THREADS is not set; one rank", .fix = {}}};
  }
  return {{.level = Level::kWarning,
           .what = fmt::format("OMP_NUM_THREADS is not set: {} ranks start {} threads each",
                               setting.ranks(), setting.cpus()),
           .fix = "export OMP_NUM_THREADS=1 (or CPUs divided by ranks)"}};
}

}  // namespace

extern const Check check;
const Check check{.name = "threads", .title = "Threads of each rank", .look = look};

}  // namespace ddpdoctor::preflight::threads

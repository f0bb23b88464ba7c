// SPDX-License-Identifier: Apache-2.0
// InfiniBand and RoCE pin memory: with a small ulimit -l, NCCL fails with "Cannot allocate memory"
// in ibv_reg_mr or falls back to TCP.
#include <fmt/format.h>

#include "base/text.h"
#include "collector/preflight/check.h"

namespace ddpdoctor::preflight::locked_memory {
namespace {

constexpr std::uint64_t kEnough = std::uint64_t{1} << 30U;

Remarks look(const Setting& setting) {
  if (setting.names("/sys/class/infiniband").empty()) {
    return {};
  }
  const auto limit = setting.limit("Max locked memory");
  if (!limit || !limit->soft || *limit->soft >= kEnough) {
    return {{.level = Level::kOk, .what = "memory may be pinned for InfiniBand", .fix = {}}};
  }
  return {
      {.level = setting.plan.nodes > 1 ? Level::kBreaks : Level::kWarning,
       .what = fmt::format("only {} may be pinned (ulimit -l) and there is InfiniBand",
                           base::bytes(static_cast<double>(*limit->soft))),
       .fix =
           "ulimit -l unlimited; docker run --ulimit memlock=-1; systemd LimitMEMLOCK=infinity"}};
}

}  // namespace

extern const Check check;
const Check check{.name = "locked-memory", .title = "Pinned memory for InfiniBand", .look = look};

}  // namespace ddpdoctor::preflight::locked_memory

// SPDX-License-Identifier: Apache-2.0
// RANK, WORLD_SIZE and related variables in this shell: if they are incomplete or left from an
// earlier run, init_process_group waits for ranks that are never started.
#include <array>

#include <fmt/format.h>

#include "collector/preflight/check.h"
#include "collector/sources/processes/proc_file.h"

namespace ddpdoctor::preflight::rank_environment {
namespace {

constexpr std::array<const char*, 4> kWanted{"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"};

Remarks look_at_numbers(const Setting& setting) {
  const auto rank = sources::number<int>(setting.variable("RANK").value_or(""));
  const auto world = sources::number<int>(setting.variable("WORLD_SIZE").value_or(""));
  if (rank && world && (*rank < 0 || *rank >= *world)) {
    return {{.level = Level::kBreaks,
             .what = fmt::format("RANK={} is not below WORLD_SIZE={}", *rank, *world),
             .fix = "ranks count from 0 to WORLD_SIZE - 1"}};
  }
  if (!rank || !world) {
    return {{.level = Level::kBreaks,
             .what = "RANK or WORLD_SIZE is not a number",
             .fix = "unset them, or give numbers"}};
  }
  return {{.level = Level::kOk, .what = fmt::format("RANK={} of {}", *rank, *world), .fix = {}}};
}

Remarks look(const Setting& setting) {
  std::string set;
  std::string missing;
  for (const char* name : kWanted) {
    std::string& list = setting.variable(name) ? set : missing;
    list += (list.empty() ? "" : ", ") + std::string(name);
  }
  const bool ranked = setting.variable("RANK") || setting.variable("WORLD_SIZE");
  if (setting.plan.launcher != Launcher::kNone) {
    return ranked ? Remarks{{.level = Level::kOk,
                             .what = "the launcher sets RANK and WORLD_SIZE itself",
                             .fix = {}}}
                  : Remarks{};
  }
  if (!ranked) {
    return {};
  }
  if (!missing.empty()) {
    return {{.level = Level::kBreaks,
             .what = fmt::format("{} set without {}: init_process_group raises", set, missing),
             .fix = "set all four, unset all, or start with torchrun"}};
  }
  return look_at_numbers(setting);
}

}  // namespace

extern const Check check;
const Check check{
    .name = "rank-environment", .title = "Rank variables in this shell", .look = look};

}  // namespace ddpdoctor::preflight::rank_environment

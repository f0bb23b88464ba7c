// SPDX-License-Identifier: Apache-2.0
#include "collector/imports/logs/told_world.h"

#include <array>
#include <optional>
#include <set>

#include "base/text.h"
#include "collector/imports/stack_dumps/stack_text.h"
#include "collector/model/told_by_logs.h"

namespace ddpdoctor::imports {
namespace {

/// accelerate, Lightning, Megatron, and torch and DeepSpeed.
constexpr std::array<std::string_view, 4> kBeforeNumber = {"Num processes: ", "Starting with ",
                                                           "using world size: ", "world_size="};
constexpr std::string_view kLightning = "Starting with ";

std::optional<std::int64_t> world_in(std::string_view line) {
  for (const std::string_view words : kBeforeNumber) {
    const auto number = number_behind(line, words, model::kMaxWorldSize);
    if (number && *number > 0 && (words != kLightning || base::contains(line, " processes"))) {
      return number;
    }
  }
  return std::nullopt;
}

}  // namespace

void read_told_world(std::string_view log, model::JobModel& job) {
  constexpr std::size_t kLongest = 4096;
  std::set<std::int64_t> sizes;
  for (const std::string_view line : base::split(log, '\n')) {
    if (const auto size = world_in(line.substr(0, kLongest))) {
      sizes.insert(*size);
    }
  }
  if (sizes.size() == 1) {
    model::Fact fact{.rank = {}, .pid = {}, .kind = std::string(model::kToldWorld), .fields = {}};
    fact.fields["ranks"] = *sizes.begin();
    job.facts.push_back(std::move(fact));
  }
}

}  // namespace ddpdoctor::imports

// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/paths/unlike_environment.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {
namespace {

constexpr std::size_t kMostSides = 3;

const model::Fact* fact_of(const model::JobModel& job, std::string_view variable) {
  const auto all = model::facts(job, "variable-unlike");
  const auto found = std::find_if(all.begin(), all.end(), [variable](const model::Fact* fact) {
    return fact->text("name") == variable;
  });
  return found == all.end() ? nullptr : *found;
}

std::string ranks(const std::string& ranges) {
  const bool one = ranges.find_first_of("-,") == std::string::npos;
  return fmt::format("rank{} {}", one ? "" : "s", base::elide(ranges, 40));
}

}  // namespace

std::string unlike_variable(const model::JobModel& job, const program::SourceText& lines,
                            std::string_view condition, int line) {
  if (model::facts(job, "variable-unlike").empty()) {
    return {};
  }
  return unlike_variable(
      job, program::origin_of(condition, {.text = &lines, .line = line}, job.sources));
}

std::string unlike_variable(const model::JobModel& job, const program::Origin& origin) {
  const auto found =
      std::find_if(origin.variables.begin(), origin.variables.end(),
                   [&job](const std::string& name) { return fact_of(job, name) != nullptr; });
  return found == origin.variables.end() ? std::string() : *found;
}

std::string how_unlike(const model::JobModel& job, std::string_view variable) {
  const model::Fact* fact = fact_of(job, variable);
  if (fact == nullptr) {
    return {};
  }
  const std::string unset = fact->text("unset").value_or("");
  if (!unset.empty()) {
    return fmt::format("the environment variable {} is not set on {}", variable, ranks(unset));
  }
  std::vector<std::string> sides;
  for (const std::string& side : fact->list("sides")) {
    if (sides.size() < kMostSides) {
      sides.push_back(ranks(side));
    }
  }
  return fmt::format("the environment variable {} has different values on {}", variable,
                     fmt::join(sides, " and "));
}

}  // namespace ddpdoctor::detectors

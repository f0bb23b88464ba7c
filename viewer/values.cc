// SPDX-License-Identifier: Apache-2.0
#include "viewer/values.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/model/questions.h"

namespace ddpdoctor::viewer {

namespace {

constexpr std::size_t kMostOperands = 2;
constexpr std::size_t kLongestExpression = 40;

/// What a decision reads, or leaves behind, is said where its own value is not known or separates
/// no ranks: no exception now, but `skipped` is 1.
std::string in_words(const std::vector<model::ValueGroup>& groups) {
  std::string out;
  std::size_t operands = 0;
  bool wanted = true;
  for (auto first = groups.begin(); first != groups.end() && wanted;) {
    const auto past = std::find_if(first, groups.end(), [&first](const model::ValueGroup& one) {
      return one.expression != first->expression;
    });
    const std::string values = model::said({first, past});
    if (first == groups.begin()) {
      out = values;
      const bool unsure = std::any_of(first, past, [](const model::ValueGroup& one) {
        return one.state != model::ValueState::kKnown;
      });
      const bool parts_nobody =
          past - first == 1 && first->value != "True" && first->value != "False";
      wanted = unsure || parts_nobody;
    } else if (operands < kMostOperands) {
      out +=
          fmt::format("; `{}` is {}", base::elide(first->expression, kLongestExpression), values);
      ++operands;
    }
    first = past;
  }
  return out;
}

/// A test with the same result on every rank no longer separates the ranks and would confuse the
/// reader.
bool is_alike(const model::JobModel& job, const std::vector<model::ValueGroup>& groups) {
  return groups.size() == 1 && groups.front().state == model::ValueState::kKnown &&
         groups.front().ranks == model::all_ranks(job) &&
         (groups.front().value == "True" || groups.front().value == "False");
}

}  // namespace

std::vector<model::ValueGroup> values_of(const model::JobModel& job,
                                         const detectors::Location& location) {
  std::vector<model::ValueGroup> read = model::values_at(job, location.file, location.line);
  if (location.outcomes.empty()) {
    return read;
  }
  std::vector<model::ValueGroup> decision;
  model::RankSet derived;
  for (const detectors::Outcome& one : location.outcomes) {
    decision.push_back({.ranks = one.ranks,
                        .expression = one.expression,
                        .value = one.value,
                        .state = model::ValueState::kDerived,
                        .reason = one.reason});
    derived = derived.united(one.ranks);
  }
  const std::string& expression = location.outcomes.front().expression;
  for (model::ValueGroup& group : read) {
    group.ranks = group.expression == expression ? group.ranks.minus(derived) : group.ranks;
  }
  std::erase_if(read, [](const model::ValueGroup& group) { return group.ranks.empty(); });
  const auto others = std::stable_partition(
      read.begin(), read.end(),
      [&expression](const model::ValueGroup& group) { return group.expression == expression; });
  decision.insert(decision.end(), read.begin(), others);
  std::stable_sort(decision.begin(), decision.end(),
                   [](const auto& a, const auto& b) { return a.ranks.size() < b.ranks.size(); });
  decision.insert(decision.end(), others, read.end());
  return decision;
}

std::string note_with_values(const model::JobModel& job, const detectors::Location& location) {
  const auto groups = values_of(job, location);
  const std::string values = is_alike(job, groups) ? std::string() : in_words(groups);
  if (values.empty() || location.note.empty()) {
    return values.empty() ? location.note : values;
  }
  return location.note + ": " + values;
}

}  // namespace ddpdoctor::viewer

// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/partings/outcomes.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "collector/detectors/evidence/wording.h"
#include "collector/detectors/paths/source_blocks.h"
#include "collector/model/observed_values.h"
#include "collector/program/questions/blocks.h"
#include "collector/program/questions/reaching.h"

namespace ddpdoctor::detectors {
namespace {

using model::ValueGroup;
using model::ValueState;

/// What one side's outcome is, and how it differs from what was read there.
struct OfSide {
  const model::RankSet& ranks;
  std::string value;
  std::string reason;
  /// The value that was read says the same, in more detail or for a later iteration too.
  std::function<bool(const std::string&)> agrees{};
};

class Outcomes {
 public:
  Outcomes(const model::JobModel& job, const model::CallSite& decision, std::string expression)
      : read_(model::values_at(job, decision.file, decision.line)),
        expression_(read_.empty() ? std::move(expression) : read_.front().expression) {}

  void add(const OfSide& side) {
    std::map<std::string, model::RankSet> by_reason;
    for (const model::Rank rank : side.ranks) {
      const ValueGroup* const read = read_on(rank);
      const bool has_value = read != nullptr && !read->value.empty();
      if (has_value && read->state == ValueState::kKnown && side.agrees(read->value)) {
        continue;
      }
      const bool other = has_value && read->value != side.value;
      by_reason[side.reason + (other ? "; now " + read->value : "")].insert(rank);
    }
    for (const auto& [reason, ranks] : by_reason) {
      out_.push_back(
          {.ranks = ranks, .expression = expression_, .value = side.value, .reason = reason});
    }
  }

  [[nodiscard]] bool was_read() const {
    return std::any_of(read_.begin(), read_.end(),
                       [](const ValueGroup& group) { return !group.value.empty(); });
  }
  [[nodiscard]] std::vector<Outcome> take() {
    return std::move(out_);
  }

 private:
  [[nodiscard]] const ValueGroup* read_on(model::Rank rank) const {
    const auto found = std::find_if(read_.begin(), read_.end(), [&](const ValueGroup& group) {
      return group.expression == expression_ && group.ranks.contains(rank);
    });
    return found == read_.end() ? nullptr : &*found;
  }

  std::vector<ValueGroup> read_;
  std::string expression_;
  std::vector<Outcome> out_;
};

Location* location_at(Finding& finding, const model::CallSite& site) {
  const auto found = std::find_if(
      finding.locations.begin(), finding.locations.end(), [&site](const Location& one) {
        return one.file == site.file && one.line == site.line && one.ranks.empty() && !one.rank;
      });
  return found == finding.locations.end() ? nullptr : &*found;
}

std::function<bool(const std::string&)> is(std::string expected) {
  return [expected = std::move(expected)](const std::string& read) { return read == expected; };
}

/// The line to which the decision leads, unless that is only known to be behind it.
std::string call_of(const Led& led) {
  return led.reached == led.decision.line ? "the call" : fmt::format("line {}", led.reached);
}

std::string reached(const Led& led) {
  return "reached " + call_of(led);
}

std::string skipped(const Led& led) {
  return "skipped " + call_of(led);
}

const char* spelled(bool value) {
  return value ? "True" : "False";
}

bool caught_nothing(const std::string& read) {
  return read.starts_with(model::kNoException);
}

void add_caught(const model::JobModel& job, const Led& led, Location& location) {
  Outcomes out(job, led.decision, led.condition);
  out.add({.ranks = *led.there,
           .value = std::string(model::kNoException),
           .reason = reached(led),
           .agrees = caught_nothing});
  out.add({.ranks = *led.others,
           .value = "an exception",
           .reason = skipped(led),
           .agrees = [](const std::string& read) { return !caught_nothing(read); }});
  location.outcomes = out.take();
}

/// A decorator decided whether the function ran.
void add_decorated(const model::JobModel& job, const Led& led, std::string otherwise,
                   Location& location) {
  constexpr const char* kRan = "ran the function";
  Outcomes out(job, led.decision, led.condition);
  out.add({.ranks = *led.there, .value = kRan, .reason = reached(led), .agrees = is(kRan)});
  out.add(
      {.ranks = *led.others, .value = otherwise, .reason = skipped(led), .agrees = is(otherwise)});
  location.outcomes = out.take();
}

bool is_decorator(const model::JobModel& job, const Led& led) {
  const auto all = program::decorators_of(lines_of(job, led.decision.file), led.reached);
  return std::any_of(all.begin(), all.end(),
                     [&led](const program::Block& one) { return one.line == led.decision.line; });
}

/// The result of a test on all ranks of a side, if it was read.
std::optional<bool> read_on(const std::vector<ValueGroup>& groups, const model::RankSet& ranks) {
  const auto holds = [&](const char* value) {
    return std::any_of(groups.begin(), groups.end(), [&](const ValueGroup& group) {
      return group.expression == groups.front().expression && group.state == ValueState::kKnown &&
             group.value == value && group.ranks.common(ranks) == ranks;
    });
  };
  return holds("True") ? std::optional(true) : holds("False") ? std::optional(false) : std::nullopt;
}

/// No line shows it, but the test was read on one side: the other went the other way.
void add_opposite(const model::JobModel& job, const Branch& branch, const Parting& parting,
                  Location& location) {
  const auto groups = model::values_at(job, branch.where.file, branch.where.line);
  const auto odd = read_on(groups, parting.odd.ranks);
  const auto rest = read_on(groups, parting.rest.ranks);
  if (odd.has_value() == rest.has_value()) {
    return;
  }
  const char* const value = spelled(odd ? !*odd : !*rest);
  Outcomes out(job, branch.where, branch.condition);
  out.add({.ranks = odd ? parting.rest.ranks : parting.odd.ranks,
           .value = value,
           .reason = "went the other way",
           .agrees = is(value)});
  location.outcomes = out.take();
}

/// Beside what was read of a loop, which shows how far it is or was on some rank.
void add_left(const model::JobModel& job, const Explanation& explanation, Finding& finding) {
  const LeftLoop& loop = *explanation.loop;
  Location* const location = location_at(finding, loop.where);
  if (location == nullptr || loop.way_out) {
    return;
  }
  const model::RankSet& odd = explanation.parting.odd.ranks;
  const model::RankSet& rest = explanation.parting.rest.ranks;
  const model::RankSet& left = loop.ours_left ? odd : rest;
  const model::RankSet& inside = loop.ours_left ? rest : odd;
  const auto anything = [](const std::string&) { return true; };
  Outcomes out(job, loop.where, loop.header);
  if (!out.was_read()) {
    return;  // the note of the line says that it ended on one side
  }
  out.add({.ranks = left,
           .value = "ended",
           .reason = fmt::format("{} past the loop", is_or_are(left)),
           .agrees = anything});
  out.add({.ranks = inside,
           .value = "not ended",
           .reason = fmt::format("{} in the loop", is_or_are(inside)),
           .agrees = anything});
  location->outcomes = out.take();
}

}  // namespace

void add_outcomes_of(const model::JobModel& job, const Led& led, Finding& finding) {
  Location* const location = location_at(finding, led.decision);
  if (location == nullptr) {
    return;
  }
  const auto result = program::result_leading_to(lines_of(job, led.decision.file),
                                                 led.decision.line, led.condition, led.reached);
  if (!result) {
    return;
  }
  Outcomes out(job, led.decision, led.condition);
  out.add({.ranks = *led.there,
           .value = spelled(*result),
           .reason = reached(led),
           .agrees = is(spelled(*result))});
  out.add({.ranks = *led.others,
           .value = spelled(!*result),
           .reason = skipped(led),
           .agrees = is(spelled(!*result))});
  location->outcomes = out.take();
}

void add_outcomes(const model::JobModel& job, const Explanation& explanation, Finding& finding) {
  const Parting& parting = explanation.parting;
  if (finding.confidence == Confidence::kPossible || parting.undecided || explanation.dispatch) {
    return;
  }
  if (!explanation.branch) {
    if (explanation.loop) {
      add_left(job, explanation, finding);
    }
    return;
  }
  const Branch& branch = *explanation.branch;
  if (!branch.or_else.empty()) {
    return;
  }
  const bool ours = branch.leads_to_ours;
  const Side& led_there = ours ? parting.odd : parting.rest;
  // Other branches guard what only prepares the call: a hook, or no_sync() for a call without it.
  const bool reached_it = std::any_of(
      led_there.path.begin(), led_there.path.end(),
      [&branch](const model::CallSite& site) { return graph::same_line(site, branch.guarded); });
  const bool shows = reached_it && branch.guarded.file == branch.where.file;
  Location* const location = location_at(finding, branch.where);
  if (location == nullptr) {
    return;
  }
  const Led led{.decision = branch.where,
                .condition = branch.condition,
                .reached = branch.guarded.line,
                .there = &led_there.ranks,
                .others = ours ? &parting.rest.ranks : &parting.odd.ranks};
  if (branch.catches) {
    add_caught(job, led, *location);
  } else if (shows && (branch.caches || is_decorator(job, led))) {
    add_decorated(job, led, branch.caches ? "returned a kept result" : "skipped the function",
                  *location);
  } else if (shows) {
    add_outcomes_of(job, led, finding);
  }
  if (location->outcomes.empty()) {
    add_opposite(job, branch, parting, *location);
  }
}

}  // namespace ddpdoctor::detectors

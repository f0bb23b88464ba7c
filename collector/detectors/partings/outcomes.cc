// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/partings/outcomes.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "collector/detectors/evidence/wording.h"
#include "collector/detectors/partings/dispatch.h"
#include "collector/detectors/partings/recorded_rounds.h"
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

/// The place that shows the decision: the one without ranks, if ranks are at the same line.
Location* location_at(Finding& finding, const model::CallSite& site) {
  Location* out = nullptr;
  for (Location& one : finding.locations) {
    if (one.file == site.file && one.line == site.line) {
      const bool of_no_rank = one.ranks.empty() && !one.rank;
      out = out == nullptr || of_no_rank ? &one : out;
      if (of_no_rank) {
        break;
      }
    }
  }
  return out;
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

/// Beside what was read of a loop, or what the records count of it, which shows how far it is or
/// was on some rank.
void add_left(const graph::Examination& examination, const Explanation& explanation,
              Finding& finding) {
  const LeftLoop& loop = *explanation.loop;
  if (loop.way_out) {
    return;
  }
  const Side& odd = explanation.parting.odd;
  const Side& rest = explanation.parting.rest;
  const Side& left = loop.ours_left ? odd : rest;
  const Side& inside = loop.ours_left ? rest : odd;
  LoopOutcome outcome{
      .loop = loop.where, .header = loop.header, .left = &left.ranks, .inside = &inside.ranks};
  const auto rounds = recorded_rounds(examination, explanation.parting.group, inside, left.ranks);
  if (rounds) {
    outcome.why_left = fmt::format("after {} recorded calls", rounds->left);
    outcome.why_inside = fmt::format("in recorded call {}", rounds->inside);
  } else if (!Outcomes(examination.job, loop.where, loop.header).was_read()) {
    return;  // the note of the line says that it ended on one side
  }
  add_loop_outcome(examination.job, outcome, finding);
}

/// The number of items on a rank inside, if it was read.
std::optional<std::int64_t> length_read(const model::JobModel& job, const LoopOutcome& outcome) {
  for (const ValueGroup& group : model::values_at(job, outcome.loop.file, outcome.loop.line)) {
    if (group.items && !group.ranks.common(*outcome.inside).empty()) {
      return group.items;
    }
  }
  return std::nullopt;
}

/// The waiting ranks are in the function that the call reached there, the others are not.
void add_dispatched(const Explanation& explanation, Finding& finding) {
  const Dispatch& dispatch = *explanation.dispatch;
  Location* const location = location_at(finding, dispatch.call);
  const bool ours = explanation.branch && explanation.branch->leads_to_ours;
  const Side& there = ours ? explanation.parting.odd : explanation.parting.rest;
  const Side& others = ours ? explanation.parting.rest : explanation.parting.odd;
  if (location == nullptr || !explanation.branch || dispatch.by_value || dispatch.runs.empty()) {
    return;  // both functions are beside the line already
  }
  location->outcomes = {
      {.ranks = there.ranks,
       .expression = dispatch.callee,
       .value = dispatch.runs,
       .reason = fmt::format("{} in it", is_or_are(there.ranks))},
      {.ranks = others.ranks,
       .expression = dispatch.callee,
       .value = dispatch.instead.empty() ? "another function" : dispatch.instead,
       .reason = dispatch.by_stack ? fmt::format("{} in it", is_or_are(others.ranks))
                                   : "skipped " + dispatch.runs}};
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

void add_opposite_outcome(const model::JobModel& job, const model::CallSite& decision,
                          const std::string& condition, const Parting& parting, Finding& finding) {
  Location* const location = location_at(finding, decision);
  const auto groups = model::values_at(job, decision.file, decision.line);
  const auto odd = read_on(groups, parting.odd.ranks);
  const auto rest = read_on(groups, parting.rest.ranks);
  if (location == nullptr || odd.has_value() == rest.has_value()) {
    return;
  }
  const char* const value = spelled(odd ? !*odd : !*rest);
  Outcomes out(job, decision, condition);
  out.add({.ranks = odd ? parting.rest.ranks : parting.odd.ranks,
           .value = value,
           .reason = "went the other way",
           .agrees = is(value)});
  location->outcomes = out.take();
}

void add_loop_outcome(const model::JobModel& job, const LoopOutcome& outcome, Finding& finding) {
  Location* const location = location_at(finding, outcome.loop);
  if (location == nullptr) {
    return;
  }
  const auto anything = [](const std::string&) { return true; };
  // As many items as those inside go over do not separate them.
  const auto has_other_length = [alike = length_read(job, outcome)](const std::string& read) {
    return !alike || read != model::said_length(*alike);
  };
  Outcomes out(job, outcome.loop, outcome.header);
  out.add({.ranks = *outcome.left,
           .value = "ended",
           .reason = outcome.why_left.empty()
                         ? fmt::format("{} past the loop", is_or_are(*outcome.left))
                         : outcome.why_left,
           .agrees = has_other_length});
  out.add({.ranks = *outcome.inside,
           .value = "not ended",
           .reason = outcome.why_inside.empty()
                         ? fmt::format("{} in the loop", is_or_are(*outcome.inside))
                         : outcome.why_inside,
           .agrees = anything});
  location->outcomes = out.take();
}

void add_outcomes(const graph::Examination& examination, const Explanation& explanation,
                  Finding& finding) {
  const model::JobModel& job = examination.job;
  const Parting& parting = explanation.parting;
  if (finding.confidence == Confidence::kPossible || parting.undecided) {
    return;
  }
  if (explanation.dispatch) {
    add_dispatched(explanation, finding);
    return;
  }
  if (!explanation.branch) {
    if (explanation.loop) {
      add_left(examination, explanation, finding);
    }
    return;
  }
  const Branch& branch = *explanation.branch;
  if (!branch.or_else.empty()) {
    return;
  }
  if (branch.defers && !explanation.otherwise.empty()) {
    return;  // the other cause would mean that all ranks went one way
  }
  // A no_sync() is entered by the side without the call.
  const bool ours = branch.leads_to_ours != branch.defers;
  const Side& led_there = ours ? parting.odd : parting.rest;
  // Other branches guard what only prepares the call: a hook, or no_sync() for a call without it.
  const bool reached_it = std::any_of(
      led_there.path.begin(), led_there.path.end(),
      [&branch](const model::CallSite& site) { return graph::same_line(site, branch.guarded); });
  const bool shows = (reached_it || branch.defers) && branch.guarded.file == branch.where.file;
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
    add_opposite_outcome(job, branch.where, branch.condition, parting, finding);
  }
}

}  // namespace ddpdoctor::detectors

// SPDX-License-Identifier: Apache-2.0
// In the forms of torch 2.6 – 2.13 (torch/distributed/flight_recorder/components). torchfrtrace
// compares the calls of a group in order and stops at the first that some ranks did not join; it
// says so only if the dumps of the missing ranks were read, and they joined all earlier ones.
#include "collector/imports/flight_recorder/analysis_text.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/text.h"
#include "collector/imports/capture/parts.h"
#include "collector/imports/stack_dumps/stack_text.h"
#include "collector/model/listed_ranks.h"
#include "collector/model/log_lines.h"
#include "collector/model/operations.h"
#include "collector/model/questions.h"

namespace ddpdoctor::imports {
namespace {

using model::CallSite;
using model::Rank;

constexpr std::size_t kMostAnalyses = 1000;  // calls in one text
constexpr std::size_t kMostCallsOfRanks = 200'000;

/// What one rank's call has instead of the printed one.
struct Difference {
  Rank rank = 0;
  std::string_view field;  // "input sizes"
  std::string_view value;
};

/// One call, as printed.
struct Analysis {
  model::CollectiveCall call;
  std::vector<Difference> differences;
  std::string group_name;
  std::vector<Rank> missing;
  std::vector<Rank> expected;  // empty: only their number was printed
  std::int64_t world = 0;
  std::vector<CallSite> frames;  // innermost first
};

/// "{0, 3}".
std::vector<Rank> ranks_in_braces(std::string_view text) {
  return model::listed_ranks(between(text, "{", "}").value_or("")).ranks;
}

/// "Not all ranks joining collective, sequence number: 7", "… collective 7 at entry 4", "Collective
/// sequence number: 7 has errors", "Collective 7 at entry 4 errors".
std::optional<std::int64_t> sequence_of(std::string_view line) {
  if (take_prefix(line, "Collective sequence number: ")) {
    const auto number = take_number(line, kMaxNumber);
    return line == " has errors" ? number : std::nullopt;
  }
  if (std::string_view rest = line; take_prefix(rest, "Collective ") && rest.ends_with(" errors")) {
    return take_number(rest, kMaxNumber);
  }
  if (!take_prefix(line, "Not all ranks joining collective")) {
    return std::nullopt;
  }
  if (take_prefix(line, ", sequence number: ") || take_prefix(line, " ")) {
    return take_number(line, kMaxNumber);
  }
  return std::nullopt;
}

/// "all_reduce at /opt/torch/distributed/distributed_c10d.py:2696".
std::optional<CallSite> analysis_frame(std::string_view line) {
  constexpr std::string_view kAt = " at ";
  const std::size_t at = line.find(kAt);
  const std::size_t colon = line.rfind(':');
  if (at == line.npos || colon == line.npos || colon < at + kAt.size()) {
    return std::nullopt;
  }
  const auto number = number_of(line.substr(colon + 1), kMaxLine);
  const std::string_view file = line.substr(at + kAt.size(), colon - at - kAt.size());
  return number ? std::optional(CallSite{.file = base::elide(file, kLongestName),
                                         .line = static_cast<int>(*number),
                                         .function = base::elide(line.substr(0, at), 256)})
                : std::nullopt;
}

model::CallState state_of(std::string_view word) {
  return word == "completed" ? model::CallState::kCompleted
         : word == "started" ? model::CallState::kStarted
                             : model::CallState::kEnqueued;
}

/// "3:tp" and "3:undefined": the group and its description.
void take_group(std::string_view value, Analysis& out) {
  const std::size_t colon = value.find(':');
  out.call.group = base::elide(value.substr(0, colon), kLongestName);
  const std::string_view name = colon == value.npos ? "" : value.substr(colon + 1);
  out.group_name = name == "undefined" ? std::string() : base::elide(name, kLongestName);
}

/// "[[4, 3], [2]]": the first one.
std::optional<std::vector<std::int64_t>> shape_in(std::string_view text) {
  std::vector<std::int64_t> out;
  const auto inside = between(text, "[[", "]");
  for (const std::string_view part : base::split(inside.value_or(""), ',')) {
    if (const auto number = number_of(base::trim(part), kMaxNumber)) {
      out.push_back(*number);
    }
  }
  return inside ? std::optional(std::move(out)) : std::nullopt;
}

/// "Culprit rank 1; Error type: X, Expected input sizes: '[[16]]' does not match found input sizes:
/// '[[40]]', Culprit rank 2; …".
void take_differences(std::string_view line, Analysis& out) {
  constexpr std::string_view kRank = "Culprit rank ";
  constexpr std::string_view kFound = " match found ";
  for (std::size_t at = line.find(kRank); at != line.npos; at = line.find(kRank, at + 1)) {
    std::string_view told = line.substr(at + kRank.size());
    told = told.substr(0, told.find(kRank));
    const auto rank = take_number(told, kMaxRank);
    const std::size_t found = told.find(kFound);
    const std::size_t colon = found == told.npos ? found : told.find(": '", found);
    if (!rank || colon == told.npos) {
      continue;
    }
    const std::string_view value = told.substr(colon + 3);
    out.differences.push_back(
        {.rank = static_cast<Rank>(*rank),
         .field = told.substr(found + kFound.size(), colon - found - kFound.size()),
         .value = value.substr(0, value.rfind('\''))});
  }
}

void apply(const Difference& difference, model::CollectiveCall& call) {
  if (difference.field == "input sizes") {
    call.shape = shape_in(difference.value);
  } else if (difference.field == "collective type") {
    call.operation = model::operation_of(difference.value.substr(0, kLongestName)).name;
  } else if (difference.field == "state") {
    call.state = state_of(difference.value);
  }
}

/// One line below the heading; false at the end of the block.
bool take_field(std::string_view line, Analysis& out) {
  const auto value = [&line](std::string_view key) { return take_prefix(line, key); };
  if (value("group info: ")) {
    take_group(line, out);
  } else if (value("collective: ")) {
    out.call.operation = model::operation_of(line.substr(0, kLongestName)).name;
  } else if (value("missing ranks: ")) {
    out.missing = ranks_in_braces(line);
  } else if (value("expected ranks: ")) {
    out.expected = ranks_in_braces(line);
    out.world = number_of(line, model::kMaxWorldSize).value_or(out.world);
  } else if (value("world size: ")) {
    out.world = number_of(line, model::kMaxWorldSize).value_or(out.world);
  } else if (value("input sizes: ")) {
    out.call.shape = shape_in(line);
  } else if (value("error msg: ")) {
    take_differences(line, out);
  } else if (value("collective state: ")) {
    out.call.state = state_of(line);
  } else if (auto frame = analysis_frame(line)) {
    out.frames.push_back(std::move(*frame));
  } else {
    return line.empty() || value("internal record id: ") || value("output sizes: ") ||
           value("collective stack trace:");
  }
  return true;
}

/// The user's frames; those of a framework if it made the call without the user's code.
void take_frames(Analysis& one) {
  for (CallSite& frame : one.frames) {
    if (model::is_user_file(frame.file)) {
      one.call.callers.push_back(frame);
    }
  }
  if (one.call.callers.empty()) {
    const auto outside = std::find_if(one.frames.begin(), one.frames.end(), [](const auto& frame) {
      return frame.file.find("/torch/") == std::string::npos;
    });
    if (outside != one.frames.end()) {
      one.call.callers.push_back(*outside);
    }
  }
  if (!one.call.callers.empty()) {
    one.call.call_site = one.call.callers.front();
  }
}

void add_analysis(Analysis one, model::JobModel& job) {
  if (one.expected.empty()) {  // the default group has the ranks 0 to N-1
    for (Rank rank = 0; one.call.group == "0" && rank < one.world; ++rank) {
      one.expected.push_back(rank);
    }
  }
  if ((one.missing.empty() && one.differences.empty()) || one.expected.empty() ||
      job.collectives.size() + one.expected.size() > kMostCallsOfRanks) {
    return;
  }
  take_frames(one);
  for (const Rank rank : one.expected) {
    model::CollectiveCall call = one.call;
    call.rank = rank;
    for (const Difference& difference : one.differences) {
      if (difference.rank == rank) {
        apply(difference, call);
      }
    }
    if (std::find(one.missing.begin(), one.missing.end(), rank) != one.missing.end()) {
      if (call.sequence <= 1) {
        continue;
      }
      call = model::CollectiveCall();
      call.rank = rank;
      call.group = one.call.group;
      call.sequence = one.call.sequence - 1;
      call.state = model::CallState::kCompleted;
    }
    job.collectives.push_back(std::move(call));
  }
  const bool known = std::any_of(job.groups.begin(), job.groups.end(),
                                 [&one](const auto& group) { return group.id == one.call.group; });
  if (!known) {
    job.groups.push_back({.id = one.call.group,
                          .name = one.call.group == "0" ? "default_pg" : one.group_name,
                          .backend = {},
                          .ranks = one.expected});
  }
}

}  // namespace

void read_analysis_text(std::string_view text, model::JobModel& job) {
  if (text.find("Not all ranks joining collective") == std::string_view::npos &&
      text.find("Collective sequence number: ") == std::string_view::npos) {
    return;
  }
  std::vector<Analysis> all;
  bool inside = false;
  for (const std::string_view raw : base::split(text, '\n')) {
    const std::string_view line =
        base::trim(model::read_log_line(raw.substr(0, kLongestLogLine)).text);
    if (const auto sequence = sequence_of(line); sequence && all.size() < kMostAnalyses) {
      all.push_back({});
      all.back().call.sequence = *sequence;
      all.back().call.state = model::CallState::kEnqueued;
      inside = true;
    } else {
      inside = inside && take_field(line, all.back());
    }
  }
  for (Analysis& one : all) {
    add_analysis(std::move(one), job);
  }
}

}  // namespace ddpdoctor::imports

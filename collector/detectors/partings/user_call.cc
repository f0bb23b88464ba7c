// SPDX-License-Identifier: Apache-2.0
// A frame of Python 3.11 or later has the columns of the current call; without columns, a line with
// one call is equally good.
#include "collector/detectors/partings/user_call.h"

#include <algorithm>

#include <fmt/format.h>

#include "collector/detectors/paths/source_blocks.h"
#include "collector/graph/activity_rules.h"
#include "collector/model/questions.h"
#include "collector/program/questions/blocks.h"
#include "collector/program/questions/expressions.h"

namespace ddpdoctor::detectors {
namespace {

constexpr std::size_t kLongestName = 48;

/// The name of the call at the end of `text`: "net.metrics.compute".
std::string_view callee_in(std::string_view text) {
  for (const program::Call& call : program::calls_in(text)) {
    if (call.end == text.size()) {
      return call.callee;
    }
  }
  return {};
}

/// The frame of the side's line; nullptr if its stack is elsewhere.
const model::Frame* frame_of(const Side& side) {
  if (side.standing == nullptr || side.standing->thread == nullptr) {
    return nullptr;
  }
  const model::Frame* user = model::user_frame(*side.standing->thread);
  return user != nullptr && user->file == side.site().file && user->line == side.site().line
             ? user
             : nullptr;
}

std::string_view by_columns(std::string_view line, const model::Frame* frame) {
  const bool known = frame != nullptr && frame->column > 0 && frame->end_line == frame->line &&
                     frame->end_column > frame->column &&
                     static_cast<std::size_t>(frame->end_column) <= line.size() + 1;
  return known ? callee_in(line.substr(static_cast<std::size_t>(frame->column) - 1,
                                       static_cast<std::size_t>(frame->end_column - frame->column)))
               : std::string_view();
}

/// The call of a statement that consists of only that call, or assigns its result.
std::string_view by_statement(std::string_view statement) {
  for (const program::Call& call : program::calls_in(statement)) {
    const std::string_view before = statement.substr(0, call.begin);
    if (call.end == statement.size() && (before.empty() || before.ends_with(" = "))) {
      return call.callee;
    }
  }
  return {};
}

/// The function that runs for the side's line: the next inner frame, without its class; empty if no
/// stack shows it.
std::string_view function_called_by(const Side& side, const model::Frame* user) {
  if (user == nullptr) {
    return {};
  }
  const auto& frames = side.standing->thread->frames;
  for (std::size_t i = static_cast<std::size_t>(user - frames.data()); i-- > 0;) {
    if (frames[i].language == model::Language::kPython) {
      return graph::plain_name(frames[i].function);
    }
  }
  return {};
}

/// Of nested calls in a statement, the one that is running.
std::string_view by_function(std::string_view statement, std::string_view function) {
  for (const program::Call& call : program::calls_in(statement)) {
    if (program::last_name(call.callee) == function) {
      return call.callee;
    }
  }
  return {};
}

bool names_operation(std::string_view name, std::string_view operation) {
  return name.find(operation) != std::string_view::npos;
}

}  // namespace

std::string user_call(const model::JobModel& job, const Side& side) {
  const model::CallSite& site = side.site();
  const auto line = site.known() ? model::source_line(job, site.file, site.line) : std::nullopt;
  if (!line || side.operation.empty()) {
    return {};
  }
  const model::Frame* user = frame_of(side);
  std::string_view name = by_columns(*line, user);
  const std::string statement = program::statement_at(lines_of(job, site.file), site.line);
  if (name.empty()) {
    name = by_function(statement, function_called_by(side, user));
  }
  if (name.empty()) {
    name = by_statement(statement);
  }
  const std::size_t dot = name.rfind('.');
  if (dot == 0) {
    name.remove_prefix(1);  // a call on the result of another call: f(x).mean()
  }
  const bool says_it = names_operation(statement, side.operation);
  return name.empty() || says_it || name.size() > kLongestName ? std::string()
                                                               : std::string(name) + "()";
}

std::string call_in_words(const model::JobModel& job, const Side& side, const Side& other) {
  // Where one line leads to both, the call on it is not what they differ in.
  const bool shared = other.calls() && side.site() == other.site();
  const std::string call = shared ? std::string() : user_call(job, side);
  return call.empty() ? side.operation : fmt::format("{} (it calls {})", call, side.operation);
}

}  // namespace ddpdoctor::detectors

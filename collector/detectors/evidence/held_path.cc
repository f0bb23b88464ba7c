// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/held_path.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "collector/detectors/evidence/processes.h"
#include "collector/detectors/paths/source_blocks.h"
#include "collector/model/observed_values.h"
#include "collector/model/questions.h"
#include "collector/program/questions/expressions.h"

namespace ddpdoctor::detectors {
namespace {

/// Calls of Python's library that answer for a path: whether it is there, or that make it.
bool asks_for_a_file(std::string_view callee) {
  constexpr std::array<std::string_view, 9> kCalls = {"exists",  "isfile", "open",  "mkdir", "link",
                                                      "symlink", "stat",   "lstat", "access"};
  return std::find(kCalls.begin(), kCalls.end(), program::last_name(callee)) != kCalls.end();
}

/// `os.open(self.path, …)`, `self.path.exists()`: somewhere in the file.
bool is_asked_for(const program::SourceText& lines, std::string_view expression) {
  return std::any_of(lines.begin(), lines.end(), [expression](const auto& line) {
    if (line.second.find(expression) == line.second.npos) {
      return false;
    }
    const auto calls = program::calls_in(line.second);
    return std::any_of(calls.begin(), calls.end(), [expression](const program::Call& call) {
      const bool passed = std::find(call.arguments.begin(), call.arguments.end(), expression) !=
                          call.arguments.end();
      const bool own = call.callee.size() > expression.size() &&
                       call.callee.starts_with(expression) && call.callee[expression.size()] == '.';
      return asks_for_a_file(call.callee) && (passed || own);
    });
  });
}

/// Of "'/tmp/x'"; nothing for other values and for one that was shortened.
std::optional<std::string> path_in(std::string_view value) {
  const bool whole = value.size() > 3 && (value.front() == '\'' || value.front() == '"') &&
                     value.back() == value.front() && value[1] == '/' &&
                     value.find("…") == value.npos;
  return whole ? std::optional(std::string(value.substr(1, value.size() - 2))) : std::nullopt;
}

}  // namespace

std::optional<HeldPath> held_path(const model::JobModel& job, const model::Process& process,
                                  const model::Thread& thread) {
  const auto rank = served_rank(job, process);
  const auto all = rank ? model::observed_values(job) : std::vector<model::SeenValue>{};
  for (const model::Frame* frame : model::user_frames(thread)) {
    std::optional<HeldPath> found;
    for (const model::SeenValue& seen : all) {
      const auto path = seen.rank == rank && seen.role == model::ValueRole::kHeld &&
                                seen.file == frame->file && seen.function == frame->function
                            ? path_in(seen.value)
                            : std::nullopt;
      if (!path || !is_asked_for(lines_of(job, frame->file), seen.expression)) {
        continue;
      }
      if (found && found->path != *path) {
        return std::nullopt;  // which of two is not known
      }
      found = HeldPath{.expression = seen.expression, .path = *path};
    }
    if (found) {
      return found;
    }
  }
  return std::nullopt;
}

}  // namespace ddpdoctor::detectors

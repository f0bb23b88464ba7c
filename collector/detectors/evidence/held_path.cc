// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/held_path.h"

#include <algorithm>
#include <string_view>

#include "collector/detectors/evidence/processes.h"
#include "collector/detectors/paths/source_blocks.h"
#include "collector/model/observed_values.h"
#include "collector/model/questions.h"
#include "collector/program/questions/method_calls.h"

namespace ddpdoctor::detectors {
namespace {

/// `os.open(self.path, …)`, `self.path.exists()`: somewhere in the file.
bool is_asked_for(const model::JobModel& job, const program::SourceText& lines,
                  std::string_view expression) {
  const auto calls = program::calls_that(lines, job.sources, program::MethodDoes::kAsksForFile);
  return std::any_of(calls.begin(), calls.end(), [expression](const program::MethodCall& one) {
    if (!one.inner && one.object == expression) {
      return true;
    }
    const auto given = one.call.field(program::Field::kArguments).children();
    return std::any_of(given.begin(), given.end(), [expression](program::Node argument) {
      const bool named = argument.is(program::NodeKind::kKeywordArgument);
      return (named ? argument.field(program::Field::kValue) : argument).one_line() == expression;
    });
  });
}

/// The absolute path in "'/tmp/x'"; nothing for other values and for shortened ones.
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
      if (!path || !is_asked_for(job, lines_of(job, frame->file), seen.expression)) {
        continue;
      }
      if (found && found->path != *path) {
        return std::nullopt;  // two paths: the waited-for one is unknown
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

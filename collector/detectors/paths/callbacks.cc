// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/paths/callbacks.h"

#include <algorithm>
#include <string_view>

#include "base/text.h"
#include "collector/detectors/paths/source_blocks.h"
#include "collector/model/questions.h"
#include "collector/program/libraries/libraries.h"
#include "collector/program/questions/blocks.h"
#include "collector/program/questions/expressions.h"

namespace ddpdoctor::detectors {
namespace {

/// Directly below the user's line is a library function that calls its argument repeatedly.
bool is_called_again(const model::Thread& thread, const model::CallSite& site) {
  const auto& frames = thread.frames;  // innermost first
  const auto outer = std::find_if(frames.begin(), frames.end(), [&site](const model::Frame& frame) {
    return frame.language == model::Language::kPython && frame.file == site.file &&
           frame.line == site.line;
  });
  for (auto at = outer; outer != frames.end() && at != frames.begin();) {
    --at;
    if (at->language != model::Language::kPython) {
      continue;
    }
    if (model::is_user_file(at->file)) {
      return false;
    }
    if (program::calls_back_as_often_as_it_likes(at->file)) {
      return true;
    }
  }
  return false;
}

/// "self.closure" in `closure=self.closure`.
std::string_view value_of(std::string_view argument) {
  const std::size_t equals = argument.find('=');
  return equals == std::string_view::npos ? argument : base::trim(argument.substr(equals + 1));
}

/// True for "self.closure", "closure", "lambda: self.loss(x)" if this is the function.
bool passes(std::string_view argument, std::string_view function) {
  return function == "<lambda>" ? argument.find("lambda") != std::string_view::npos
                                : program::last_name(value_of(argument)) == function;
}

}  // namespace

std::optional<Callback> callback_below(const model::JobModel& job, const model::Thread& thread,
                                       const model::CallSite& site, const Path& below) {
  if (below.empty() || !is_called_again(thread, site)) {
    return std::nullopt;
  }
  const std::string_view function = program::last_name(below.back().function);
  const std::string statement = program::statement_at(lines_of(job, site.file), site.line);
  for (const program::Call& call : program::calls_in(statement)) {
    for (const std::string_view argument : call.arguments) {
      if (passes(argument, function)) {
        return Callback{
            .where = site,
            .caller = std::string(call.callee),
            .called = function == "<lambda>" ? "its lambda" : std::string(value_of(argument))};
      }
    }
  }
  return std::nullopt;
}

}  // namespace ddpdoctor::detectors

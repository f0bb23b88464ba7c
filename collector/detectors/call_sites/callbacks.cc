// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/call_sites/callbacks.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/text.h"
#include "collector/detectors/call_sites/source_blocks.h"
#include "collector/program/questions/blocks.h"
#include "collector/program/questions/expressions.h"

namespace ddpdoctor::detectors {
namespace {

/// Of all optimizers of torch only this one calls its closure more than once in a step.
constexpr std::string_view kLineSearch = "LBFGS";

bool has_line_search(const model::JobModel& job) {
  return std::any_of(job.sources.begin(), job.sources.end(), [](const auto& file) {
    return std::any_of(file.second.begin(), file.second.end(), [](const auto& line) {
      return line.second.find(kLineSearch) != std::string::npos;
    });
  });
}

/// scipy.optimize, and functions that try again.
bool calls_again(const model::JobModel& job, std::string_view caller) {
  constexpr std::array<std::string_view, 7> kWords = {
      "minimize", "fmin", "least_squares", "curve_fit", "fsolve", "line_search", "retry"};
  const std::string_view name = program::last_name(caller);
  return (name == "step" && has_line_search(job)) ||
         std::any_of(kWords.begin(), kWords.end(), [name](std::string_view word) {
           return name.find(word) != std::string_view::npos;
         });
}

/// "self.closure" of `closure=self.closure`.
std::string_view value_of(std::string_view argument) {
  const std::size_t equals = argument.find('=');
  return equals == std::string_view::npos ? argument : base::trim(argument.substr(equals + 1));
}

/// "self.closure", "closure", "lambda: self.loss(x)" where this is the function.
bool passes(std::string_view argument, std::string_view function) {
  return function == "<lambda>" ? argument.find("lambda") != std::string_view::npos
                                : program::last_name(value_of(argument)) == function;
}

}  // namespace

std::optional<Callback> callback_below(const model::JobModel& job, const model::CallSite& site,
                                       const Path& below) {
  if (below.empty()) {
    return std::nullopt;
  }
  const std::string_view function = program::last_name(below.back().function);
  const std::string statement = program::statement_at(lines_of(job, site.file), site.line);
  for (const program::Call& call : program::calls_in(statement)) {
    if (!calls_again(job, call.callee)) {
      continue;
    }
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

// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/call_sites/passed_values.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/detectors/call_sites/source_blocks.h"
#include "collector/python_source/expressions.h"
#include "collector/python_source/parameters.h"

namespace ddpdoctor::detectors {
namespace {

using python_source::Argument;
using python_source::Dependence;
using python_source::Lines;
using python_source::Parameter;

bool tests_rank(const Argument& argument, const Lines& lines) {
  return python_source::dependence(argument.text, lines, argument.line) == Dependence::kRank;
}

/// What the calls on the path pass; nothing where none of them passes it.
std::optional<bool> passed_on_path(const model::JobModel& job, const Path& path,
                                   const Parameter& parameter) {
  std::optional<bool> out;
  for (const model::CallSite& site : path) {
    const Lines& lines = lines_of(job, site.file);
    for (const Argument& argument : python_source::arguments_for(parameter, lines)) {
      if (argument.line <= site.line && site.line <= argument.last_line) {
        out = out.value_or(false) || tests_rank(argument, lines);
      }
    }
  }
  return out;
}

bool passed_anywhere(const model::JobModel& job, const Parameter& parameter) {
  return std::any_of(job.sources.begin(), job.sources.end(), [&parameter](const auto& source) {
    const auto all = python_source::arguments_for(parameter, source.second);
    return std::any_of(all.begin(), all.end(), [&source](const Argument& argument) {
      return tests_rank(argument, source.second);
    });
  });
}

/// Line of the only `def NAME(` of the job's sources.
std::optional<model::CallSite> definition_of(const model::JobModel& job, std::string_view name) {
  const std::string header = fmt::format("def {}(", name);
  std::optional<model::CallSite> found;
  for (const auto& [file, lines] : job.sources) {
    for (const auto& [number, text] : lines) {
      if (!base::trim(text).starts_with(header)) {
        continue;
      }
      if (found) {
        return std::nullopt;
      }
      found = model::CallSite{.file = file, .line = number, .function = std::string(name)};
    }
  }
  return found;
}

/// `def is_chief(self): return not self.rank`, in whichever file.
bool answers_by_rank(const model::JobModel& job, std::string_view name) {
  constexpr std::string_view kReturn = "return ";
  const auto site = definition_of(job, name);
  if (!site) {
    return false;
  }
  const Lines& lines = lines_of(job, site->file);
  const auto body = lines.upper_bound(site->line);
  const auto extent =
      body == lines.end() ? std::nullopt : python_source::function_extent(lines, body->first);
  if (!extent) {
    return false;
  }
  return std::any_of(body, lines.upper_bound(extent->second), [&](const auto& line) {
    const std::string_view code = base::trim(line.second);
    return code.starts_with(kReturn) &&
           python_source::dependence(code.substr(kReturn.size()), lines, line.first) ==
               Dependence::kRank;
  });
}

/// A property or a function that the condition asks tests the rank.
bool asks_by_rank(const model::JobModel& job, std::string_view condition) {
  std::vector<std::string_view> names = python_source::values_read(condition);
  for (const python_source::Call& call : python_source::calls_in(condition)) {
    names.push_back(python_source::last_name(call.callee));
  }
  return std::any_of(names.begin(), names.end(),
                     [&job](std::string_view name) { return answers_by_rank(job, name); });
}

}  // namespace

Dependence dependence_through_calls(const model::JobModel& job, const Path& path,
                                    const Lines& lines, const python_source::Block& block) {
  const Dependence on = dependence_of(lines, block);
  if (on != Dependence::kData || reads_data(block.condition)) {
    return on;
  }
  const auto parameters = python_source::parameters_behind(block.condition, lines, block.line);
  const bool by_rank =
      std::any_of(parameters.begin(), parameters.end(), [&](const Parameter& parameter) {
        const auto told = passed_on_path(job, path, parameter);
        return told ? *told : passed_anywhere(job, parameter);
      });
  return by_rank || asks_by_rank(job, block.condition) ? Dependence::kRank : on;
}

}  // namespace ddpdoctor::detectors

// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/call_sites/passed_values.h"

#include <algorithm>
#include <optional>

#include "collector/detectors/call_sites/source_blocks.h"
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
  return by_rank ? Dependence::kRank : on;
}

}  // namespace ddpdoctor::detectors

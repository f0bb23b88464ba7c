// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/polled_store.h"

#include <algorithm>
#include <string_view>

#include "collector/detectors/paths/source_blocks.h"
#include "collector/program/questions/blocks.h"
#include "collector/program/questions/expressions.h"
#include "collector/program/source_text.h"

namespace ddpdoctor::detectors {
namespace {

/// `self.store.add("gate", 0)`, `kv.check([key])`: recognized by the arguments of torch's Store
/// methods, whatever the object's name. `get` does not count, because every dict has it.
bool asks_a_store(std::string_view statement) {
  const auto calls = program::calls_in(statement);
  return std::any_of(calls.begin(), calls.end(), [](const program::Call& call) {
    const std::string_view name = program::last_name(call.callee);
    const std::size_t given = call.arguments.size();
    const bool asked = name == "add"           ? given == 2
                       : name == "compare_set" ? given == 3
                       : name == "num_keys"    ? given == 0
                       : name == "check"       ? given == 1 && call.arguments[0].starts_with('[')
                                               : false;
    return asked && name.size() < call.callee.size();
  });
}

}  // namespace

std::optional<PolledStore> polled_store(const model::JobModel& job,
                                        const graph::Standing& standing) {
  if (standing.activity != graph::Activity::kSleeping || !standing.user.known()) {
    return std::nullopt;
  }
  const program::SourceText& lines = lines_of(job, standing.user.file);
  const auto loop = program::loop_around(lines, standing.user.line);
  if (!loop || loop->kind != program::BlockKind::kWhile) {
    return std::nullopt;
  }
  for (auto line = lines.find(loop->line); line != lines.end(); ++line) {
    if (line->first != loop->line && !line->second.empty() &&
        line->second.find_first_not_of(' ') != std::string::npos &&
        !encloses(lines, *loop, line->first)) {
      break;
    }
    if (asks_a_store(line->second)) {
      model::CallSite site = standing.user;
      PolledStore polled{.loop = site, .header = loop->text, .asks = site};
      polled.loop.line = loop->line;
      polled.asks.line = line->first;
      return polled;
    }
  }
  return std::nullopt;
}

}  // namespace ddpdoctor::detectors

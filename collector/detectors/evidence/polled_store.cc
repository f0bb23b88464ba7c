// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/polled_store.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "collector/detectors/paths/source_blocks.h"
#include "collector/program/questions/blocks.h"
#include "collector/program/questions/expressions.h"
#include "collector/program/source_text.h"

namespace ddpdoctor::detectors {
namespace {

/// `self.store.add("gate", 0)`, `kv_store.check([key])`.
bool asks_a_store(std::string_view statement) {
  constexpr std::array<std::string_view, 5> kQuestions = {"store.add", "store.check", "store.get",
                                                          "store.num_keys", "store.compare_set"};
  if (statement.find("store") == std::string_view::npos) {
    return false;
  }
  const auto calls = program::calls_in(statement);
  return std::any_of(calls.begin(), calls.end(), [&kQuestions](const program::Call& call) {
    return std::any_of(kQuestions.begin(), kQuestions.end(), [&call](std::string_view question) {
      return call.callee.ends_with(question);
    });
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

// SPDX-License-Identifier: Apache-2.0
#include "collector/graph/recorded_lines.h"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "collector/program/origin/called_lines.h"

namespace ddpdoctor::graph {

void mark_recorded_lines(const model::JobModel& job) {
  std::map<std::string_view, std::set<int>> lines;
  for (const model::CollectiveCall& call : job.collectives) {
    for (const model::CallSite& site : call.callers) {
      lines[site.file].insert(site.line);
    }
  }
  const bool all = job.history_complete && job.coverage.events_lost == 0 && !lines.empty();
  for (const auto& [file, text] : job.sources) {
    program::set_called_lines(text, all ? std::optional(lines[file]) : std::nullopt);
  }
}

}  // namespace ddpdoctor::graph

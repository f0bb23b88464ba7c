// SPDX-License-Identifier: Apache-2.0
#include "cli/left_by_others.h"

#include <set>
#include <string>

#include "collector/model/questions.h"

namespace ddpdoctor::cli {

void add_left_by_others(model::JobModel& job, const leftovers::Scope& scope) {
  std::set<std::string> known;
  for (const model::Fact* segment : model::facts(job, "shm-segment")) {
    known.insert(segment->text("path").value_or(""));
  }
  for (const leftovers::Leftover& one : leftovers::segments(scope)) {
    const bool unused =
        one.state == leftovers::State::kFree || one.state == leftovers::State::kForeign;
    if (!unused || !one.creator || known.contains(one.name)) {
      continue;
    }
    model::Fact fact{.rank = {}, .pid = {}, .kind = "shm-segment", .fields = {}};
    fact.fields["path"] = one.name;
    fact.fields["bytes"] = static_cast<std::int64_t>(one.bytes);
    fact.fields["age_seconds"] = one.age;
    fact.fields["creator_alive"] = false;
    fact.fields["in_use"] = false;
    job.facts.push_back(std::move(fact));
  }
}

}  // namespace ddpdoctor::cli

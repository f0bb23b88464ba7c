// SPDX-License-Identifier: Apache-2.0
#include "cli/ras.h"

#include <algorithm>

#include "collector/imports/nccl_ras.h"

namespace ddpdoctor::cli {
namespace {

bool same_counts(const model::JobModel& a, const model::JobModel& b) {
  return std::equal(a.collectives.begin(), a.collectives.end(), b.collectives.begin(),
                    b.collectives.end(),
                    [](const model::CollectiveCall& x, const model::CollectiveCall& y) {
                      return x.rank == y.rank && x.group == y.group && x.sequence == y.sequence;
                    });
}

}  // namespace

void add_ras(model::JobModel& job, const std::vector<std::string>& answers) {
  std::vector<model::JobModel> read;
  for (const std::string& answer : answers) {
    auto one = imports::read_ras_json(answer, "NCCL RAS");
    if (!one) {
      job.coverage.warnings.push_back(one.error().what);
      return;
    }
    read.push_back(std::move(*one));
  }
  if (read.size() < 2) {
    return;
  }
  model::JobModel& newest = read.back();
  const bool still = same_counts(read.front(), newest);
  for (model::Fact& fact : newest.facts) {
    fact.fields["still"] = still;
    job.facts.push_back(std::move(fact));
  }
  job.coverage.observed.push_back(still ? "NCCL RAS, asked twice: the counts did not change"
                                        : "NCCL RAS, asked twice: the counts changed");
  if (!still || !job.collectives.empty()) {
    return;
  }
  job.collectives = std::move(newest.collectives);
  for (model::ProcessGroup& group : newest.groups) {
    job.groups.push_back(std::move(group));
  }
}

}  // namespace ddpdoctor::cli

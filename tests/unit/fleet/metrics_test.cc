// SPDX-License-Identifier: Apache-2.0
#include "collector/fleet/metrics.h"

#include <gtest/gtest.h>

#include "tests/support/fleet_story.h"

namespace ddpdoctor::fleet {
namespace {

TEST(Metrics, TellTheStragglerTheSilentNodeAndTheFindings) {
  JobState state{Limits{}};
  NodeMarks two = told("two", 2, 1, 7, 1);
  two.world_size = 4;
  state.hear(two, 100, 1e9);
  state.hear(told("one", 0, 2, 9, 1), 103, 1e9);
  const std::string text = metrics(state, "run \"7\"", 103.5, {{"missing-rank", 1}});
  for (const char* line :
       {"ddpdoctor_rank_behind_collectives{training_job=\"run \\\"7\\\"\",host=\"two\",rank=\"2\"} "
        "2\n",
        "ddpdoctor_rank_collectives_total{training_job=\"run \\\"7\\\"\",host=\"one\",rank=\"0\"} "
        "9\n",
        "ddpdoctor_group_spread_collectives{training_job=\"run \\\"7\\\"\",group=\"0\"} 2\n",
        "ddpdoctor_nodes{training_job=\"run \\\"7\\\"\",state=\"silent\"} 1\n",
        "ddpdoctor_nodes{training_job=\"run \\\"7\\\"\",state=\"heard\"} 1\n",
        "ddpdoctor_job_ranks_unheard{training_job=\"run \\\"7\\\"\"} 1\n",
        "ddpdoctor_job_seconds_without_progress{training_job=\"run \\\"7\\\"\"} 0.5\n",
        "ddpdoctor_findings_total{training_job=\"run \\\"7\\\"\",kind=\"missing-rank\"} 1\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
  }
}

}  // namespace
}  // namespace ddpdoctor::fleet

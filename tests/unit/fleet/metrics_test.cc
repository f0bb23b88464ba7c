// SPDX-License-Identifier: Apache-2.0
#include "collector/fleet/metrics.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "collector/fleet/metrics_text.h"
#include "tests/support/fleet_story.h"

namespace ddpdoctor::fleet {
namespace {

TEST(Metrics, TellTheStragglerTheSilentNodeAndTheFindings) {
  JobState state{Limits{}};
  NodeMarks two = told("two", 2, 1, 7, 1);
  two.world_size = 4;
  state.hear(two, 100, 1e9);
  state.hear(told("one", 0, 2, 9, 1), 103, 1e9);
  const std::string text =
      prometheus_text(metrics(state, "run \"7\"", 103.5, {{"missing-rank", 1}}));
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

TEST(Metrics, OtlpSaysTheSameInTheNamesOfItsProtocol) {
  JobState state{Limits{}};
  state.hear(told("a \"b\"", 0, 2, 9, 1), 103, 1e9);
  const auto message = nlohmann::json::parse(
      otlp_json(metrics(state, "run\n7", 103.5, {{"missing-rank", 1}}), 1764129600.5, "1.2"));
  const auto& scope = message["resourceMetrics"][0]["scopeMetrics"][0];
  EXPECT_EQ(scope["scope"]["version"], "1.2");
  const auto named = [&scope](const std::string& name) {
    for (const auto& metric : scope["metrics"]) {
      if (metric["name"] == name) {
        return metric;
      }
    }
    return nlohmann::json();
  };
  const auto begun = named("ddpdoctor_rank_collectives_total");
  EXPECT_EQ(begun["sum"]["aggregationTemporality"], 2);
  EXPECT_EQ(begun["sum"]["isMonotonic"], true);
  const auto& point = begun["sum"]["dataPoints"][1];
  EXPECT_EQ(point["timeUnixNano"], "1764129600500000000");
  EXPECT_EQ(point["asDouble"], 9);
  EXPECT_EQ(point["attributes"][0]["value"]["stringValue"], "run\\x0a7");
  EXPECT_EQ(point["attributes"][1],
            nlohmann::json({{"key", "host"}, {"value", {{"stringValue", "a \"b\""}}}}));
  EXPECT_EQ(point["attributes"][2]["value"]["stringValue"], "1");
  EXPECT_TRUE(named("ddpdoctor_nodes").contains("gauge"));
  EXPECT_EQ(named("ddpdoctor_findings_total")["sum"]["dataPoints"][0]["attributes"][1]["value"],
            nlohmann::json({{"stringValue", "missing-rank"}}));
}

TEST(Metrics, OtlpLeavesOutAMetricWithoutPoints) {
  const JobState state{Limits{}};
  const std::string message = otlp_json(metrics(state, "run", 1, {}), 1, "1");
  EXPECT_TRUE(nlohmann::json::accept(message));
  EXPECT_EQ(message.find("ddpdoctor_findings_total"), std::string::npos);
  EXPECT_NE(message.find("ddpdoctor_job_ranks_unheard"), std::string::npos);
}

}  // namespace
}  // namespace ddpdoctor::fleet

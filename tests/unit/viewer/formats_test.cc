// SPDX-License-Identifier: Apache-2.0
// The report formats: markdown, GitHub annotations, SARIF, JUnit.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/unit/viewer/story.h"
#include "viewer/place.h"
#include "viewer/render.h"

namespace ddpdoctor::viewer {
namespace {

using tests::conditional_barrier;
using tests::diagnosis_of;
using tests::hung_job;

TEST(Place, UrisAreRelativeBelowTheFolderAndAbsoluteElsewhere) {
  EXPECT_EQ(uri("/srv/a b/train.py", "/srv"), "a%20b/train.py");
  EXPECT_EQ(uri("/srv/train.py", "/srv/"), "train.py");
  EXPECT_EQ(uri("/srv2/train.py", "/srv"), "file:///srv2/train.py");
  EXPECT_EQ(uri("/srv/train.py", "/"), "file:///srv/train.py");
}

TEST(Place, IsNotMadeUp) {
  detectors::Finding finding = conditional_barrier();
  finding.locations.clear();
  EXPECT_EQ(main_place(finding).file, "");
}

TEST(WhatOtherJobsLeft, EndsTheReportAndIsNoFinding) {
  model::JobModel job = hung_job();
  job.facts.push_back({.rank = {},
                       .pid = {},
                       .kind = "shm-segment",
                       .fields = {{"path", std::string("/dev/shm/torch_1_2")},
                                  {"bytes", std::int64_t{4096}},
                                  {"age_seconds", 900.0},
                                  {"creator_alive", false},
                                  {"in_use", false}}});
  const auto diagnosis = diagnosis_of(job, {}, diagnosis::Verdict::kRunning);
  for (const std::string& report : {text(diagnosis, {}), markdown(diagnosis)}) {
    const std::size_t note = report.find("note: 1 shared memory segment");
    ASSERT_NE(note, std::string::npos) << report;
    EXPECT_GT(note, report.find("stacks of 4 ranks")) << report;
    EXPECT_EQ(report.find("note:"), note) << report;
  }
  const auto coverage = nlohmann::json::parse(json(diagnosis))["coverage"];
  EXPECT_EQ(coverage["closing"].size(), 1U);
  EXPECT_EQ(coverage["warnings"].size(), 0U);
  EXPECT_TRUE(nlohmann::json::parse(sarif(diagnosis, ""))["runs"][0]["results"].empty());
  EXPECT_EQ(junit(diagnosis).find("<failure"), std::string::npos);
}

TEST(Sarif, NamesRuleLocationAndFingerprint) {
  const model::JobModel job = hung_job();
  const auto log = nlohmann::json::parse(sarif(diagnosis_of(job, {conditional_barrier()}), "/srv"));
  EXPECT_EQ(log["version"], "2.1.0");
  const auto& run = log["runs"][0];
  const auto& result = run["results"][0];
  EXPECT_EQ(result["ruleId"], "rank-conditional-collective");
  EXPECT_EQ(run["tool"]["driver"]["rules"][result["ruleIndex"].get<std::size_t>()]["id"],
            "rank-conditional-collective");
  EXPECT_EQ(result["level"], "error");
  EXPECT_EQ(result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"], "train.py");
  EXPECT_EQ(result["locations"][0]["physicalLocation"]["region"]["startLine"], 61);
  EXPECT_EQ(result["relatedLocations"].size(), 2U);
}

TEST(Sarif, RelativePlacesNameTheRootThatTheRunDeclares) {
  const model::JobModel job = hung_job();
  const auto log = nlohmann::json::parse(sarif(diagnosis_of(job, {conditional_barrier()}), "/srv"));
  const auto& run = log["runs"][0];
  const auto& place = run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"];
  EXPECT_FALSE(place["uri"].get<std::string>().starts_with("file:"));
  EXPECT_TRUE(run["originalUriBaseIds"].contains(place["uriBaseId"].get<std::string>()));
  EXPECT_EQ(run["automationDetails"]["id"], "ddpdoctor/");
}

TEST(Sarif, RulesLinkTheirPageOnlyWhereTheBuildKnowsItsAddress) {
  const model::JobModel job = hung_job();
  const auto driver = [&job](std::string_view pages) {
    return nlohmann::json::parse(sarif(diagnosis_of(job, {conditional_barrier()}), "/srv",
                                       pages))["runs"][0]["tool"]["driver"];
  };
  const auto linked = driver("https://example.org/blob/main");
  EXPECT_EQ(linked["informationUri"], "https://example.org/blob/main/README.md");
  for (const auto& rule : linked["rules"]) {
    EXPECT_EQ(rule["helpUri"],
              "https://example.org/blob/main/docs/causes.md#" + rule["id"].get<std::string>());
  }
  const auto bare = driver("");
  EXPECT_FALSE(bare.contains("informationUri"));
  EXPECT_FALSE(bare["rules"][0].contains("helpUri"));
}

TEST(Sarif, FingerprintsForgetRanksAndShiftedLines) {
  model::JobModel job = hung_job();
  const auto print = [&job](const detectors::Finding& finding) {
    return nlohmann::json::parse(sarif(diagnosis_of(job, {finding}),
                                       "/srv"))["runs"][0]["results"][0]["partialFingerprints"];
  };
  const auto before = print(conditional_barrier());
  detectors::Finding finding = conditional_barrier();
  finding.culprits = {0};
  finding.locations.front().line = 71;
  job.sources["/srv/train.py"][71] = "    dist.barrier()";
  EXPECT_EQ(print(finding), before);
  finding.kind = "missing-rank";
  EXPECT_NE(print(finding), before);
}

TEST(Sarif, FingerprintsForgetTheFolder) {
  const model::JobModel job = hung_job();
  const auto print = [&job](std::string_view folder) {
    return nlohmann::json::parse(sarif(diagnosis_of(job, {conditional_barrier()}),
                                       folder))["runs"][0]["results"][0]["partialFingerprints"];
  };
  EXPECT_EQ(print("/srv"), print("/"));
  EXPECT_EQ(print("/srv"), print("/tmp"));
}

TEST(Sarif, AResultWithoutAPlaceHasNoLocation) {
  model::JobModel job;
  detectors::Finding finding = conditional_barrier();
  finding.locations.clear();
  const auto log = nlohmann::json::parse(sarif(diagnosis_of(job, {finding}), "/srv"));
  EXPECT_TRUE(log["runs"][0]["results"][0]["locations"].empty());
  const auto& rule = log["runs"][0]["tool"]["driver"]["rules"][1];
  EXPECT_NE(rule["help"]["markdown"].get<std::string>().find("```diff"), std::string::npos);
}

bool holds(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST(Junit, HasAGreenCaseForEveryCauseThatWasLookedFor) {
  const model::JobModel job = hung_job();
  const std::string xml = junit(diagnosis_of(job, {conditional_barrier()}));
  EXPECT_TRUE(holds(
      xml, R"(<testsuite name="ddpdoctor" tests="2" failures="1" skipped="0" errors="0" id="0")"))
      << xml;
  EXPECT_TRUE(holds(xml, R"(<testcase classname="ddpdoctor" name="missing-rank" time="0"/>)"))
      << xml;
  EXPECT_TRUE(holds(
      xml,
      R"(<failure type="rank-conditional-collective" message="rank 2 never joined all_reduce #1043">)"))
      << xml;
}

TEST(Junit, WhatIsPossibleOrUnobservedIsSkipped) {
  model::JobModel job = hung_job();
  detectors::Finding finding = conditional_barrier();
  finding.confidence = detectors::Confidence::kPossible;
  const std::string xml = junit(diagnosis_of(job, {finding}));
  EXPECT_TRUE(holds(xml, R"(failures="0" skipped="1")")) << xml;
  EXPECT_TRUE(holds(xml, R"(time="0" file="/srv/train.py" line="61">)")) << xml;
  job.observations.clear();
  EXPECT_TRUE(holds(junit(diagnosis_of(job, {})), R"(tests="2" failures="0" skipped="2")"));
}

TEST(Junit, ASecondFindingOfACauseIsACaseOfItsOwn) {
  const model::JobModel job = hung_job();
  const std::string xml = junit(diagnosis_of(job, {conditional_barrier(), conditional_barrier()}));
  EXPECT_TRUE(holds(xml, R"(tests="3" failures="2")")) << xml;
  EXPECT_TRUE(holds(
      xml, R"x(name="rank-conditional-collective (2)" time="0" file="/srv/train.py" line="61">)x"))
      << xml;
}

TEST(Junit, SaysWhenAndWhereAndShowsTheReport) {
  model::JobModel job = hung_job();
  job.hosts = {"node<1>"};
  job.observations.back().time = 1'790'000'000.5;
  const std::string xml = junit(diagnosis_of(job, {conditional_barrier()}));
  EXPECT_TRUE(holds(xml, R"(hostname="node&lt;1&gt;" timestamp="2026-09-21T14:13:20")")) << xml;
  EXPECT_TRUE(holds(xml, "<system-out>error: rank 2 never joined")) << xml;
  job.hosts.clear();
  job.observations.back().time = -1e300;
  EXPECT_TRUE(holds(junit(diagnosis_of(job, {})),
                    R"(hostname="localhost" timestamp="1970-01-01T00:00:00")"));
}

TEST(Junit, EscapesMarkup) {
  const model::JobModel job = hung_job();
  detectors::Finding finding = conditional_barrier();
  finding.summary = "a < b & \"c\" \x01";
  EXPECT_NE(
      junit(diagnosis_of(job, {finding})).find(R"(message="a &lt; b &amp; &quot;c&quot; \x01")"),
      std::string::npos);
}

TEST(Github, WritesOneEscapedAnnotationForEachFinding) {
  const model::JobModel job = hung_job();
  detectors::Finding finding = conditional_barrier();
  finding.summary = "100% stuck\nhere";
  finding.fix = "a: b";
  EXPECT_EQ(github(diagnosis_of(job, {finding}), "/srv"),
            "::error file=train.py,line=61,title=ddpdoctor rank-conditional-collective::100%25 "
            "stuck here%0AFix: a: b\n"
            "::notice file=train.py,line=57,title=ddpdoctor rank-conditional-collective::the "
            "branch that separates them\n");
  EXPECT_EQ(github(diagnosis_of(job, {}, diagnosis::Verdict::kRunning), "/srv"),
            "::notice title=ddpdoctor::running: 4 ranks are making progress\n");
}

TEST(Markdown, TellsFindingPlacesAndStacks) {
  const model::JobModel job = hung_job();
  const std::string said = markdown(diagnosis_of(job, {conditional_barrier()}));
  EXPECT_NE(said.find("### rank 2 never joined `all_reduce #1043`\n\n"
                      "`rank-conditional-collective` (certain)\n"),
            std::string::npos)
      << said;
  EXPECT_NE(said.find("| `train.py:61` | `dist.barrier()` | rank 2 is here, in evaluate |\n"),
            std::string::npos)
      << said;
  EXPECT_NE(said.find("```text\nstacks of 4 ranks"), std::string::npos) << said;
  EXPECT_NE(said.find("More: `ddpdoctor explain rank-conditional-collective`"), std::string::npos);
}

TEST(Markdown, CodeAndCallsOfASentenceAreCode) {
  detectors::Finding finding = conditional_barrier();
  finding.summary = "rank 0 called `a | b_` inside `if *x*`; #12 of x_1 and one ` alone";
  const std::string said = markdown(diagnosis_of(hung_job(), {finding}));
  EXPECT_NE(said.find("### rank 0 called `a \\| b_` inside `if *x*`; `#12` of x_1 and one \\` "
                      "alone\n"),
            std::string::npos)
      << said;
}

TEST(Markdown, NamesStayReadableAndMarkupStaysText) {
  const model::JobModel job = hung_job();
  detectors::Finding finding = conditional_barrier();
  finding.summary = "all_reduce in __init__ <b> *x* @team";
  const std::string said = markdown(diagnosis_of(job, {finding}));
  EXPECT_NE(said.find("### all_reduce in \\_\\_init\\_\\_ \\<b\\> \\*x\\* @<!-- -->team\n"),
            std::string::npos)
      << said;
}

TEST(Markdown, SourceCannotBreakOutOfItsCell) {
  model::JobModel job = hung_job();
  job.sources["/srv/train.py"][61] = "x = `a` | b";
  const std::string said = markdown(diagnosis_of(job, {conditional_barrier()}));
  EXPECT_NE(said.find("`` x = `a` \\| b ``"), std::string::npos) << said;
}

}  // namespace
}  // namespace ddpdoctor::viewer

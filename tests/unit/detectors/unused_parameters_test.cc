// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/unit/detectors/collective_stories.h"

namespace ddpdoctor::detectors {
namespace {

constexpr const char* kSource = R"(
class Detector(torch.nn.Module):
    def forward(self, image, has_boxes):
        out = self.head(image)
        if has_boxes:
            out = out + self.boxes(image)
        return out

def main():
    for step in range(100):
        loss = model(image, has_boxes)
        loss.backward()
        dist.barrier()
)";

JobBuilder told() {
  JobBuilder builder = job();
  builder.ranks(3)
      .source(kTrain, kSource)
      .stack(kAll, in_backward(at("main", "backward")))
      .stack(1, in("barrier", at("main", "barrier")));
  return builder;
}

TEST(UnusedParameters, NamesTheRankThatIsPastBackward) {
  const Findings findings = asked("unused-parameters", told().build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{1}));
  EXPECT_EQ(findings[0].waiting, (model::RankSet{0, 2}));
  EXPECT_EQ(findings[0].locations.at(0).function, "forward");
  EXPECT_EQ(findings[0].locations.at(0).line, 4);
}

TEST(UnusedParameters, NamesTheParametersThatOnlyTheCulpritMisses) {
  model::JobModel job = told().build();
  const auto reducer = [](model::Rank rank, std::vector<std::string> names) {
    return model::Fact{.rank = rank,
                       .pid = std::nullopt,
                       .kind = "reducer",
                       .fields = {{"not_ready", std::move(names)}}};
  };
  job.facts = {reducer(0, {"frozen"}), reducer(1, {"frozen", "boxes.weight", "boxes.bias"})};
  const Findings findings = asked("unused-parameters", job);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(std::get<std::vector<std::string>>(findings[0].details.at("parameters")),
            (std::vector<std::string>{"boxes.bias", "boxes.weight"}));
}

/// Rank 1 of three has reached a call of its own; this many of its backwards reduced every bucket.
model::JobModel with_reducers(std::int64_t finalized) {
  JobBuilder builder = told();
  for (const model::Rank rank : {0, 1, 2}) {
    builder.fact(
        "reducer",
        {{"backward", std::int64_t{8}},
         {"finalized", rank == 1 ? finalized : std::int64_t{7}},
         {"not_ready", rank == 1 && finalized < 8 ? std::vector<std::string>{"boxes.weight"}
                                                  : std::vector<std::string>{}}},
        rank);
  }
  return builder.build();
}

TEST(UnusedParameters, IsSilentOnARankWhoseReducerGotAllGradients) {
  EXPECT_EQ(asked("unused-parameters", with_reducers(7)).size(), 1U);
  EXPECT_TRUE(asked("unused-parameters", with_reducers(8)).empty());
}

TEST(UnusedParameters, BelievesTheReducersAndNotTheMajority) {
  JobBuilder builder = job();
  builder.ranks(3)
      .source(kTrain, kSource)
      .stack(kAll, in("barrier", at("main", "barrier")))
      .stack(1, in_backward(at("main", "backward")));
  for (const model::Rank rank : {0, 1, 2}) {
    builder.fact("reducer",
                 {{"backward", std::int64_t{8}},
                  {"finalized", std::int64_t{7}},
                  {"not_ready", rank == 1 ? std::vector<std::string>{}
                                          : std::vector<std::string>{"boxes.weight"}}},
                 rank);
  }
  const Findings findings = asked("unused-parameters", builder.build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{0, 2}));
}

TEST(UnusedParameters, TellsTheLastStepFromALoopLeftEarly) {
  const auto told = [](const char* kind, std::int64_t backwards, std::int64_t finalized) {
    JobBuilder builder = job();
    builder.ranks(2)
        .source(kTrain, R"(
def main():
    for step in range(len(batches)):
        model(image, has_boxes).sum().backward()
    dist.barrier()
)")
        .stack(0, in_backward(at("main", "backward")))
        .stack(1, in("barrier", at("main", "barrier")));
    model::JobModel job = builder.build();
    const auto reducer = [](model::Rank rank, std::int64_t begun, std::int64_t done,
                            std::vector<std::string> names) {
      return model::Fact{
          .rank = rank,
          .pid = std::nullopt,
          .kind = "reducer",
          .fields = {{"backward", begun}, {"finalized", done}, {"not_ready", std::move(names)}}};
    };
    job.facts = {reducer(0, 3, 2, {}), reducer(1, backwards, finalized, {"boxes.weight"})};
    return asked(kind, job).size();
  };
  EXPECT_EQ(told("unused-parameters", 3, 2), 1U);
  EXPECT_EQ(told("uneven-inputs", 3, 2), 0U);
  EXPECT_EQ(told("uneven-inputs", 2, 2), 1U);
  EXPECT_EQ(told("unused-parameters", 2, 2), 0U);
}

TEST(UnusedParameters, SeesTheNextForward) {
  JobBuilder builder = told();
  builder.stack(1, in_ddp_forward(at("main", "model(image")));
  const Findings findings = asked("unused-parameters", builder.build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{1}));
}

TEST(UnusedParameters, BreaksTheTieOfTwoRanksByBackward) {
  for (const model::Rank odd : {0, 1}) {
    JobBuilder builder = job();
    builder.ranks(2)
        .source(kTrain, kSource)
        .stack(kAll, in_backward(at("main", "backward")))
        .stack(odd, in("barrier", at("main", "barrier")));
    const Findings findings = asked("unused-parameters", builder.build());
    ASSERT_EQ(findings.size(), 1U) << odd;
    EXPECT_EQ(findings[0].culprits, (model::RankSet{odd}));
  }
}

TEST(UnusedParameters, BlamesThoseWhoAreBehindABucketThatOneStillReduces) {
  JobBuilder builder = job();
  builder.ranks(3)
      .source(kTrain, kSource)
      .stack(kAll, in("barrier", at("main", "barrier")))
      .stack(1, in_backward(at("main", "backward")))
      .history(kAll, 1, 3)
      .call(1, {.operation = "all_reduce", .sequence = 4, .site = site("main", "backward")})
      .call({0, 2}, {.operation = "barrier", .sequence = 4, .site = site("main", "barrier")});
  const Findings findings = asked("unused-parameters", builder.build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{0, 2}));
  EXPECT_TRUE(asked("mismatched-op", builder.build()).empty());
}

TEST(UnusedParameters, LooksWhetherEachRankChoosesWhenToReduce) {
  const auto told = [](const char* kind, const std::string& choice) {
    JobBuilder builder = job();
    builder.ranks(2)
        .source(kTrain,
                "def main():\n    seen = 0\n    for i, ids in enumerate(loader):\n        " +
                    choice +
                    "\n            with model.no_sync():\n"
                    "                model(ids).sum().backward()\n"
                    "        else:\n"
                    "            model(ids).sum().backward()  # and reduce\n"
                    "        seen += ids.numel()\n"
                    "        dist.barrier()\n")
        .stack(0, in_backward(at("main", "# and reduce")))
        .stack(1, in("barrier", at("main", "barrier")));
    return asked(kind, builder.build());
  };
  const std::string own = "if seen + ids.numel() < tokens:";
  EXPECT_TRUE(told("unused-parameters", own).empty());
  EXPECT_EQ(told("divergent-branch", own).size(), 1U);
}

TEST(UnusedParameters, ReadsTheRaisingFormFromTheLog) {
  const model::JobModel raised =
      job()
          .ranks(2)
          .log(1,
               "RuntimeError: Expected to have finished reduction in the prior iteration before "
               "starting a new one. ...\n"
               "Parameter indices which did not receive grad for rank 1: 4 5\n")
          .build();
  const Findings findings = asked("unused-parameters", raised);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].confidence, Confidence::kCertain);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{1}));
  EXPECT_EQ(std::get<std::vector<std::string>>(findings[0].details.at("parameters")),
            (std::vector<std::string>{"4", "5"}));
}

TEST(UnusedParameters, AStaticGraphIsNotToBeHelpedByFindingThem) {
  const auto told = [](std::string_view line) {
    JobBuilder builder = job();
    builder.ranks(2).source("/srv/train.py", line);
    builder.log(1, "RuntimeError: Expected to have finished reduction in the prior iteration\n");
    return asked("unused-parameters", builder.build()).at(0);
  };
  const Finding fixed = told("model = DDP(model, static_graph=True)\n");
  EXPECT_TRUE(fixed.fix.starts_with("Remove static_graph")) << fixed.fix;
  EXPECT_EQ(fixed.locations.back().line, 1);
  EXPECT_TRUE(told("model = DDP(model)\n").fix.starts_with("Pass find_unused_parameters=True"));
}

TEST(UnusedParameters, IsOnlyPossibleWhereTheRankWentOnAfterTheMessage) {
  const std::string said =
      "sample: RuntimeError: Expected to have finished reduction in the prior iteration before\n";
  JobBuilder builder = job();
  builder.ranks(2).stack(kAll, in("all_reduce", "py:main@/srv/train.py:37")).log(0, said);
  EXPECT_TRUE(nothing_likely(asked("unused-parameters", builder.build())));
}

TEST(UnusedParameters, ReadsWhatLightningMakesOfIt) {
  const std::string said =
      "[rank1]: Traceback (most recent call last):\n"
      "[rank1]:   File \"/srv/train.py\", line 43, in <module>\n"
      "[rank1]:     trainer.fit(task, loader)\n"
      "[rank1]: RuntimeError: It looks like your LightningModule has parameters that were not used "
      "in producing the loss returned by training_step. If this is intentional, you must ...\n";
  const Findings findings = asked("unused-parameters", job().ranks(2).log({}, said).build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{1}));
  ASSERT_FALSE(findings[0].locations.empty());
  EXPECT_EQ(findings[0].locations[0].line, 43);
  EXPECT_NE(findings[0].fix.find("ddp_find_unused_parameters_true"), std::string::npos);
}

TEST(UnusedParameters, IsSilentOnTheHealthyTwin) {
  JobBuilder builder = told();
  builder.stack(kAll, in_backward(at("main", "backward")));
  EXPECT_TRUE(asked("unused-parameters", builder.build()).empty());
  EXPECT_TRUE(asked("unused-parameters", moving(told().build())).empty());
}

// Rank 1 is in a collective of its own before the backward in which rank 0 waits.
TEST(UnusedParameters, WaitsUntilTheBackwardHasBegun) {
  const auto told = [](std::optional<std::int64_t> ready, const char* first, const char* second) {
    JobBuilder builder = job();
    builder.ranks(2)
        .source(kTrain,
                std::string("def main():\n    for x in loader:\n        loss = model(x)\n") +
                    first + second)
        .stack(0, in_backward(at("main", "backward")))
        .stack(1, in("all_gather", at("main", "all_gather")));
    for (const model::Rank rank : {0, 1}) {
      std::map<std::string, model::FactValue> fields{
          {"parameters", std::int64_t{2}},
          {"backward", std::int64_t{8}},
          {"finalized", std::int64_t{7}},
          {"not_ready",
           rank == 1 ? std::vector<std::string>{"bias", "weight"} : std::vector<std::string>{}}};
      if (rank == 1 && ready) {
        fields["ready"] = *ready;
      }
      builder.fact("reducer", std::move(fields), rank);
    }
    return builder.build();
  };
  constexpr const char* kShare =
      "        if bank.full():\n            dist.all_gather(bank.rows)\n";
  constexpr const char* kStep = "        loss.backward()\n";
  for (const auto ready : {std::optional<std::int64_t>(), std::optional<std::int64_t>(0)}) {
    EXPECT_TRUE(asked("unused-parameters", told(ready, kShare, kStep)).empty());
    EXPECT_EQ(asked("divergent-branch", told(ready, kShare, kStep)).size(), 1U);
    EXPECT_EQ(asked("unused-parameters", told(ready, kStep, kShare)).size(), 1U);
  }
  EXPECT_EQ(asked("unused-parameters", told(1, kShare, kStep)).size(), 1U);
}

TEST(UnusedParameters, IsOnlyPossibleWhenARankIsUnobserved) {
  JobBuilder builder = told();
  builder.unobserved(0);
  EXPECT_TRUE(nothing_likely(asked("unused-parameters", builder.build())));
}

TEST(UnusedParameters, DoesNotDependOnTheOrderOfRanks) {
  EXPECT_EQ(essence(asked("unused-parameters", told().build())),
            essence(asked("unused-parameters", records_reversed(told().build()))));
}

TEST(UnusedParameters, NamesTheRanksAndTheParametersOfALog) {
  const std::string raised =
      "[rank0]: Traceback (most recent call last):\n[rank0]:   File \"/srv/train.py\", line 35, in "
      "main\n[rank0]: RuntimeError: Expected to have finished reduction in the prior iteration "
      "before\n[rank0]: Parameter indices which did not receive grad for rank 0: 14 15\n";
  Findings findings =
      asked("unused-parameters", job().ranks(3).exited(0, 1).ended().log({}, raised).build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, model::RankSet{0});
  EXPECT_NE(findings[0].summary.find("parameters 14, 15"), std::string::npos);
  EXPECT_EQ(findings[0].locations.at(0).line, 35);
  findings = asked("unused-parameters",
                   job()
                       .ranks(3)
                       .ended()
                       .log({}, raised + "[rank0]: Parameters which did not receive grad for rank "
                                         "0: exits.weight, exits.bias\n")
                       .build());
  EXPECT_NE(findings.at(0).summary.find("exits.weight, exits.bias"), std::string::npos);
  EXPECT_EQ(std::get<std::vector<std::string>>(findings[0].details.at("parameters")),
            (std::vector<std::string>{"exits.weight", "exits.bias"}));
}

/// All make as many iterations as the only call in the file says.
Findings of_loop(const std::string& call) {
  const std::string from_module = " | " + site("<module>", call);
  JobBuilder builder = job();
  builder.ranks(2)
      .source(kTrain,
              "def epoch(steps):\n    for step in range(steps):\n"
              "        model(x).sum().backward()\n" +
                  call + "\ndist.barrier()\n")
      .history(kAll, 1, 20, "all_reduce", site("epoch", "backward") + from_module);
  builder.all_reduce(0, 21, 5, site("epoch", "backward") + from_module);
  builder.barrier(1, 21, site("<module>", "barrier"));
  builder.stack(0, in_backward(at("epoch", "backward") + " | " + at("<module>", call)));
  builder.stack(1, in("barrier", at("<module>", "barrier")));
  return asked("uneven-inputs", builder.build());
}

TEST(UnusedParameters, AreNoUnevenInputsWhereEveryCallPassesOneNumberOfSteps) {
  EXPECT_TRUE(of_loop("epoch(12)").empty());
  EXPECT_FALSE(of_loop("epoch(len(shard))").empty());
}

}  // namespace
}  // namespace ddpdoctor::detectors

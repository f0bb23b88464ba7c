// SPDX-License-Identifier: Apache-2.0
// A decorator of the user lets only some ranks into a function: the condition in the decorator is
// the cause.
#include <gtest/gtest.h>

#include "tests/unit/detectors/collective_stories.h"

namespace ddpdoctor::detectors {
namespace {

TEST(Decorator, OfTheUsersHasTheTestThatDecides) {
  constexpr const char* kDecorated = R"(
import torch.distributed as dist

def chosen(function):
    def inner(*values):
        if dist.get_rank() > 0:
            return None
        return function(*values)
    return inner

@chosen
def publish(t):
    dist.broadcast(t, src=0)

def main():
    dist.all_reduce(t)
    publish(t)
)";
  JobBuilder builder = job();
  builder.ranks(4).source(kTrain, kDecorated);
  builder.stack(kAll, in("all_reduce", at("main", "dist.all_reduce(t)")));
  builder.stack(0, in("broadcast", at("publish", "dist.broadcast(t, src=0)") + " | " +
                                       at("inner", "return function(*values)") + " | " +
                                       at("main", "    publish(t)")));
  const Findings findings = asked("rank-conditional-collective", builder.build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].locations.back().line, 5);
}

const std::string kCached = R"(
import functools
import torch.distributed as dist

@functools.lru_cache(maxsize=64)
def mask(bucket):
    dist.broadcast(m, src=0)
    return m

def step(length):
    m = mask(length // 8)
    dist.all_reduce(grads)
)";

TEST(Decorator, ThatKeepsResultsSkipsTheFunctionOnARankThatHasOne) {
  JobBuilder builder = job();
  builder.ranks(3).source(kTrain, kCached);
  builder.stack({0, 2}, in("all_reduce", at("step", "dist.all_reduce")));
  builder.stack(1, in("broadcast", at("mask", "dist.broadcast") + " | " + at("step", "m = mask")));
  const Findings findings = asked("divergent-branch", builder.build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{1}));
  EXPECT_EQ(std::get<std::string>(findings[0].details.at("decided_by")), "cache");
  EXPECT_NE(findings[0].summary.find("kept result from `@functools.lru_cache(maxsize=64)`"),
            std::string::npos)
      << findings[0].summary;
  EXPECT_TRUE(asked("mismatched-op", builder.build()).empty());
}

}  // namespace
}  // namespace ddpdoctor::detectors

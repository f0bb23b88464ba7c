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

}  // namespace
}  // namespace ddpdoctor::detectors

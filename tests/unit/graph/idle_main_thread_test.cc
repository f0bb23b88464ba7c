// SPDX-License-Identifier: Apache-2.0
// A rank whose main thread is a framework's idle loop is where the thread of its training is.
#include <gtest/gtest.h>

#include "collector/graph/standing.h"
#include "tests/support/job_builder.h"

namespace ddpdoctor::graph {
namespace {

using namespace ddpdoctor::tests;

TEST(IdleMainThread, LeadsToTheThreadThatWaitsForABatch) {
  const auto told =
      job()
          .ranks(1)
          .stack(0, "py:get@/usr/lib/python3.11/queue.py:171 | py:run@/srv/actor.py:5")
          .thread(0, {.stack = "py:get@/usr/lib/python3.11/multiprocessing/queues.py:113 | "
                               "py:_try_get_data@/opt/torch/utils/data/dataloader.py:1133 | "
                               "py:__next__@/opt/torch/utils/data/dataloader.py:631 | "
                               "py:epoch@/srv/train.py:9"})
          .build();
  const auto all = standings(told);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].activity, Activity::kDataLoader);
  EXPECT_EQ(all[0].user.line, 9);
}

}  // namespace
}  // namespace ddpdoctor::graph

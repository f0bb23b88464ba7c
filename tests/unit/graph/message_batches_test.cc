// SPDX-License-Identifier: Apache-2.0
// A batch of messages over NCCL: torch's recorder gives only the end of the batch a state.
#include <gtest/gtest.h>

#include "collector/graph/examination.h"
#include "tests/support/job_builder.h"

namespace ddpdoctor::graph {
namespace {

using model::CallState;
using tests::job;
using tests::JobBuilder;

constexpr const char* kRing = R"(
import torch.distributed as dist
def walk(sources):
    for source in sources:
        dist.batch_isend_irecv(ops)
    dist.all_reduce(loss)
)";

/// A ring of three ranks; rank 2 makes one batch less than the others and waits for nothing.
model::JobModel ring(std::int64_t first) {
  JobBuilder builder = job();
  builder.ranks(3).backend("nccl").source("/srv/ring.py", kRing);
  const std::string batch = "walk@/srv/ring.py~batch_isend";
  const std::string reduce = "walk@/srv/ring.py~all_reduce";
  for (const model::Rank rank : {0, 1, 2}) {
    const std::int64_t batches = rank == 2 ? 1 : 2;
    for (std::int64_t one = 0; one < batches; ++one) {
      const bool lost = rank == 0 && one == 1;
      const double time = 10.0 + static_cast<double>(one);
      const auto told = [&](const std::string& operation, std::optional<model::Rank> peer) {
        return tests::CallStory{
            .operation = operation,
            .sequence = peer ? first + one : 0,
            .site = batch,
            .count = 64,
            .peer = peer,
            .state = peer || lost ? CallState::kEnqueued : CallState::kCompleted,
            .time = time};
      };
      builder.call(rank, told("send", (rank + 1) % 3)).call(rank, told("recv", (rank + 2) % 3));
      builder.call(rank, told("coalesced", std::nullopt));
    }
    builder.call(rank, {.operation = "all_reduce",
                        .sequence = 1,
                        .site = reduce,
                        .state = CallState::kEnqueued,
                        .time = 20});
    builder.stack(rank,
                  "native:??@libcuda.so.1 | native:cuStreamSynchronize@libcuda.so.1 | "
                  "py:walk@/srv/ring.py~all_reduce");
  }
  return builder.build();
}

TEST(MessageBatches, AreOverWhenTheirEndIs) {
  const model::JobModel model = ring(1);
  const Examination examination = examine(model);
  const Calls& sent = examination.history.point_to_point(0);
  ASSERT_EQ(sent.size(), 4U);
  EXPECT_EQ(sent[0]->state, CallState::kCompleted);
  EXPECT_EQ(sent[1]->state, CallState::kCompleted);
  EXPECT_EQ(sent[2]->state, CallState::kEnqueued);
  EXPECT_EQ(sent[3]->state, CallState::kEnqueued);
  EXPECT_EQ(examination.standing(1)->call->operation, "all_reduce");
  EXPECT_EQ(examination.standing(2)->call->operation, "all_reduce");
}

TEST(MessageBatches, WaitInTheMessageThatThePeerDidNotPost) {
  const model::JobModel model = ring(1);
  const Examination examination = examine(model);
  EXPECT_EQ(examination.standing(0)->activity, Activity::kPointToPoint);
  EXPECT_EQ(examination.standing(0)->call->operation, "recv");
  EXPECT_EQ(examination.standing(0)->call->peer, 2);
}

/// The recorder has lost older messages: the numbers of those it kept show nothing.
TEST(MessageBatches, AreNotCountedWhereTheirFirstIsLost) {
  const model::JobModel model = ring(7);
  const Examination examination = examine(model);
  EXPECT_EQ(examination.standing(0)->call->operation, "send");
}

}  // namespace
}  // namespace ddpdoctor::graph

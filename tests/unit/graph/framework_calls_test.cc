// SPDX-License-Identifier: Apache-2.0
// Collectives that a framework calls through functions of its own.
#include <gtest/gtest.h>

#include "collector/graph/standing.h"
#include "tests/support/job_builder.h"

namespace ddpdoctor::graph {
namespace {

using tests::job;

Standing lone_rank(tests::JobBuilder builder) {
  static model::JobModel kept;
  kept = builder.build();
  return standings(kept).at(0);
}

TEST(FrameworkCalls, OfAWrapperOverMpiIsTheOperationInItsName) {
  const std::string library = "@/v/site-packages/tensorrt_llm/_torch/distributed/communicator.py:5";
  const std::string user = " | py:step@/srv/run.py:7 | py:main@/srv/run.py:9";
  const auto operation = [&](const std::string& frames) {
    const Standing standing = lone_rank(job().ranks(1).stack(0, frames + user));
    EXPECT_EQ(standing.user.line, 7);
    return standing.call ? standing.call->operation : std::string();
  };
  EXPECT_EQ(operation("py:tp_cp_allgather" + library), "all_gather");
  EXPECT_EQ(operation("py:safe_broadcast" + library + " | py:tp_broadcast" + library), "broadcast");
  EXPECT_EQ(operation("py:recv_object" + library), "recv");
  EXPECT_EQ(operation("py:create_tp_comm" + library), "");
  const Standing own = lone_rank(job().ranks(1).stack(0, "py:tp_allgather@/srv/tools.py:5"));
  EXPECT_FALSE(own.call.has_value());
}

TEST(FrameworkCalls, ReachesThroughOneDecoratorOfTheFramework) {
  const std::string decorated = "py:wrapped_fn@/v/site-packages/deepspeed/utils/nvtx.py:15 | ";
  const std::string wait =
      "py:wait@/v/site-packages/deepspeed/runtime/zero/partition_parameters.py:600 | ";
  const std::string user = "py:step@/srv/run.py:7";
  const auto waits = [&](const std::string& frames) {
    return lone_rank(job().ranks(1).stack(0, frames + user)).call.has_value();
  };
  EXPECT_TRUE(waits(decorated + wait));
  EXPECT_FALSE(waits(decorated + decorated + wait));
  EXPECT_FALSE(waits("py:read@/v/site-packages/other/files.py:3 | " + wait));
}

TEST(FrameworkCalls, OfABindingOfNcclIsItsFunction) {
  const Standing standing = lone_rank(job().ranks(1).stack(
      0,
      "py:ncclCommWindowRegister@/v/site-packages/vllm/distributed/device_communicators/"
      "pynccl_wrapper.py:5 | py:step@/srv/run.py:7"));
  EXPECT_EQ(standing.activity, Activity::kCollective);
  EXPECT_EQ(standing.call->operation, "ncclCommWindowRegister");
}

}  // namespace
}  // namespace ddpdoctor::graph

// SPDX-License-Identifier: Apache-2.0
#include "collector/model/operations.h"

#include <gtest/gtest.h>

namespace ddpdoctor::model {
namespace {

struct Case {
  const char* recorded;
  const char* spelled;
};

class OperationOf : public testing::TestWithParam<Case> {};

TEST_P(OperationOf, SpeaksPyTorch) {
  EXPECT_EQ(operation_of(GetParam().recorded).name, GetParam().spelled);
}

INSTANTIATE_TEST_SUITE_P(
    RecordedNames, OperationOf,
    testing::Values(
        Case{"gloo:all_reduce", "all_reduce"}, Case{"gloo:broadcast", "broadcast"},
        Case{"gloo:_allgather_base", "all_gather_into_tensor"},
        Case{"nccl:_all_gather_base", "all_gather_into_tensor"},
        Case{"nccl:_reduce_scatter_base", "reduce_scatter_tensor"},
        Case{"nccl:all_reduce_barrier", "barrier"}, Case{"nccl:_broadcast_oop", "broadcast"},
        Case{"gloo:alltoall_base", "all_to_all_single"}, Case{"nccl:coalesced", "coalesced"},
        Case{"gloo:sparse_all_reduce", "all_reduce"}, Case{"gloo:recvAnySource", "recv"},
        Case{"ncclAllReduce", "all_reduce"}, Case{"AllGather", "all_gather"},
        Case{"all_reduce", "all_reduce"}, Case{"my_custom_op", "my_custom_op"}, Case{"", ""}));

TEST(Operation, NamesThePartnersOfAPointToPoint) {
  const Operation send = operation_of("nccl:send 0->1");
  EXPECT_EQ(send.name, "send");
  EXPECT_TRUE(send.point_to_point);
  EXPECT_EQ(send.own, 0);
  EXPECT_EQ(send.peer, 1);
  const Operation recv = operation_of("nccl:recv 3<-0");
  EXPECT_EQ(recv.own, 3);
  EXPECT_EQ(recv.peer, 0);
}

TEST(Operation, KeepsNoPeerThatIsNoRank) {
  EXPECT_FALSE(operation_of("nccl:send 0->-1").peer);
  EXPECT_FALSE(operation_of("nccl:send 0->99999999999999").peer);
  EXPECT_FALSE(operation_of("nccl:send x").peer);
  EXPECT_FALSE(operation_of("gloo:all_reduce").point_to_point);
}

TEST(BackendOf, IsWhatStandsBeforeTheColon) {
  EXPECT_EQ(backend_of("gloo:all_reduce"), "gloo");
  EXPECT_EQ(backend_of("all_reduce"), "");
}

TEST(DtypeOf, TranslatesScalarTypes) {
  EXPECT_EQ(dtype_of("Float"), "float32");
  EXPECT_EQ(dtype_of("Long"), "int64");
  EXPECT_EQ(dtype_of("torch.bfloat16"), "bfloat16");
  EXPECT_EQ(dtype_of("Float8_e4m3fn"), "float8_e4m3fn");
  EXPECT_EQ(dtype_of("float32"), "float32");
}

}  // namespace
}  // namespace ddpdoctor::model

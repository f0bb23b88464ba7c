// SPDX-License-Identifier: Apache-2.0
#include "collector/model/operation_kinds.h"

#include <gtest/gtest.h>

namespace ddpdoctor::model {
namespace {

TEST(OperationKinds, AnAllReduceReducesAndKeepsTheSize) {
  const OperationKind kind = kind_of("all_reduce");
  EXPECT_TRUE(kind.reduces && kind.keeps_size && kind.one_input_size);
  EXPECT_FALSE(kind.has_root || kind.gathers || kind.scatters || kind.makes_communicator);
}

TEST(OperationKinds, MpisNonblockingVariantIsOfTheSameKind) {
  EXPECT_TRUE(kind_of("ibroadcast").has_root);
  EXPECT_TRUE(kind_of("iall_to_all").exchanges);
}

TEST(OperationKinds, ScattersAndExchangesMayDifferInTheirInputs) {
  EXPECT_FALSE(kind_of("scatter").one_input_size);
  EXPECT_FALSE(kind_of("all_to_all_single").one_input_size);
  EXPECT_TRUE(kind_of("reduce_scatter_tensor").one_input_size);
}

TEST(OperationKinds, CommInitMakesACommunicator) {
  EXPECT_TRUE(kind_of("comm_init").makes_communicator);
  EXPECT_FALSE(kind_of("barrier").makes_communicator);
}

TEST(OperationKinds, AnUnknownOperationHasNoProperty) {
  const OperationKind kind = kind_of("hello");
  EXPECT_FALSE(kind.one_input_size || kind.keeps_size || kind.reduces || kind.has_root ||
               kind.gathers || kind.scatters || kind.exchanges || kind.makes_communicator);
}

}  // namespace
}  // namespace ddpdoctor::model

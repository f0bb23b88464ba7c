// SPDX-License-Identifier: Apache-2.0
#include "collector/model/building/arguments_of_nccl.h"

#include <gtest/gtest.h>

namespace ddpdoctor::model {
namespace {

const std::string kBelow = "nccl:000000000000000a";

CollectiveCall call(Rank rank, const std::string& group, std::int64_t sequence,
                    const std::string& operation) {
  CollectiveCall made;
  made.rank = rank;
  made.group = group;
  made.sequence = sequence;
  made.operation = operation;
  made.count = 4;
  return made;
}

/// The communicator's own initialization is its first call.
CollectiveCall init(Rank rank) {
  return call(rank, kBelow, 1, "comm_init");
}

CollectiveCall rooted(Rank rank, std::int64_t sequence, Rank root) {
  CollectiveCall made = call(rank, kBelow, sequence + 1, "broadcast");
  made.root = root;
  return made;
}

CollectiveCall message(Rank from, Rank peer, const std::string& operation, std::int64_t count) {
  CollectiveCall made = call(from, kBelow, 1, operation);
  made.point_to_point = true;
  made.peer = peer;
  made.count = count;
  return made;
}

/// Torch's records of two ranks in one group.
JobModel told(const std::vector<std::string>& operations) {
  JobModel job;
  job.groups.push_back({.id = "0", .name = "default_pg", .backend = "nccl", .ranks = {0, 1}});
  job.groups.push_back({.id = kBelow, .name = kBelow, .backend = "nccl", .ranks = {0, 1}});
  for (const Rank rank : {0, 1}) {
    for (std::size_t i = 0; i < operations.size(); ++i) {
      job.collectives.push_back(call(rank, "0", static_cast<std::int64_t>(i) + 1, operations[i]));
    }
  }
  return job;
}

TEST(ArgumentsOfNccl, GiveTorchsCallsTheirRootsAndReductions) {
  JobModel job = told({"broadcast", "all_reduce", "barrier"});
  CollectiveCall reduced = call(0, kBelow, 3, "all_reduce");
  reduced.reduce_op = "max";
  add_arguments_of_nccl(job, {init(0), rooted(0, 1, 1), reduced, call(0, kBelow, 4, "all_reduce")});
  EXPECT_EQ(job.collectives[0].root, 1);
  EXPECT_EQ(job.collectives[1].reduce_op, "max");
  EXPECT_TRUE(job.collectives[2].reduce_op.empty());
  EXPECT_FALSE(job.collectives[3].root);  // of rank 1 nothing is known
}

TEST(ArgumentsOfNccl, TellWhetherTheGpuHasBegunACall) {
  JobModel job = told({"all_reduce", "all_reduce"});
  CollectiveCall over = call(0, kBelow, 2, "all_reduce");
  over.begun = true;
  CollectiveCall queued = call(0, kBelow, 3, "all_reduce");
  queued.begun = false;
  add_arguments_of_nccl(job, {init(0), over, queued});
  EXPECT_EQ(job.collectives[0].begun, true);
  EXPECT_EQ(job.collectives[1].begun, false);
  EXPECT_FALSE(job.collectives[2].begun);  // of rank 1 nothing is known
}

TEST(ArgumentsOfNccl, AreNotTakenIfTheCallsAreNotTheSame) {
  JobModel shifted = told({"broadcast", "all_reduce"});
  add_arguments_of_nccl(shifted, {init(0), rooted(0, 1, 1), rooted(0, 2, 1)});
  EXPECT_FALSE(shifted.collectives[0].root);
  JobModel fewer = told({"broadcast", "broadcast"});
  add_arguments_of_nccl(fewer, {init(0), rooted(0, 1, 1)});
  EXPECT_FALSE(fewer.collectives[0].root);
}

TEST(ArgumentsOfNccl, AreNotTakenIfTwoGroupsHaveTheSameMembers) {
  JobModel job = told({"broadcast"});
  job.groups.push_back({.id = "1", .name = "other", .backend = "nccl", .ranks = {0, 1}});
  add_arguments_of_nccl(job, {rooted(0, 1, 1)});
  EXPECT_FALSE(job.collectives[0].root);
}

TEST(ArgumentsOfNccl, GiveAnAllToAllTheSizesOfItsMessages) {
  JobModel job = told({"all_to_all", "all_reduce", "all_to_all"});
  add_arguments_of_nccl(
      job, {message(0, 0, "send", 2), message(0, 0, "recv", 2), message(0, 1, "send", 2),
            message(0, 1, "recv", 2), message(0, 0, "send", 1), message(0, 0, "recv", 2),
            message(0, 1, "send", 3), message(0, 1, "recv", 2)});
  EXPECT_EQ(job.collectives[0].splits, (std::vector<std::int64_t>{2, 2}));
  EXPECT_EQ(job.collectives[2].splits, (std::vector<std::int64_t>{1, 3}));
  EXPECT_EQ(job.collectives[2].output_splits, (std::vector<std::int64_t>{2, 2}));
  EXPECT_FALSE(job.collectives[3].splits);
}

TEST(ArgumentsOfNccl, GiveNoSplitsIfOtherMessagesUseTheCommunicator) {
  JobModel job = told({"all_to_all"});
  add_arguments_of_nccl(job, {message(0, 1, "send", 2), message(0, 1, "send", 2)});
  EXPECT_FALSE(job.collectives[0].splits);
}

}  // namespace
}  // namespace ddpdoctor::model

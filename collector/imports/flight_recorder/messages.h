// SPDX-License-Identifier: Apache-2.0
// Sends and receives in the form of a dump. torch's recorder counts them in their process group,
// and torchfrtrace takes each for a call of all its members. Therefore each pair of ranks is
// written as a group of two, in which a send and its receive have the same number.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "collector/model/job_model.h"

namespace ddpdoctor::imports {

/// The key in a pair's configuration for the name of the group in which the two communicate.
inline constexpr std::string_view kPairOf = "pair_of";

/// Two ranks that exchange messages in a process group; the same rank twice if it sends to itself.
struct MessagePair {
  std::string id;                  // "0/0:1"
  std::string_view of;             // ProcessGroup::id
  std::vector<model::Rank> ranks;  // in ascending order
};

/// One side of one message.
struct PairedMessage {
  const model::CollectiveCall* call = nullptr;
  const MessagePair* pair = nullptr;
  std::int64_t number = 0;  // from 1; equal on both sides
};

struct PairedMessages {
  std::deque<MessagePair> pairs;  // messages point into it
  std::vector<PairedMessage> messages;
  std::size_t nameless = 0;   // messages with an unknown peer
  std::size_t forgotten = 0;  // completed messages whose predecessors are unknown
};

/// The nth send from one rank to another with one tag matches the nth such receive. Counts require
/// a complete history; otherwise only open messages can be matched. `job` must outlive the result.
PairedMessages pair_messages(const model::JobModel& job);

/// "send 0->1": the ranks of the pair in torch's notation.
std::string name_of_message(const PairedMessage& message);

}  // namespace ddpdoctor::imports

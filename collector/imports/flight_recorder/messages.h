// SPDX-License-Identifier: Apache-2.0
// Sends and receives as a dump can tell them. torch's recorder counts them in their process group,
// and torchfrtrace takes each for a call of all its members; so each pair of ranks is written as a
// group of two, in which a send and its receive have one number.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "collector/model/job_model.h"

namespace ddpdoctor::imports {

/// The key of a pair's configuration that names the group in which the two exchange.
inline constexpr std::string_view kPairOf = "pair_of";

/// Two ranks that exchange messages in a process group; one rank twice when it sends to itself.
struct MessagePair {
  std::string id;                  // "0/0:1"
  std::string_view of;             // ProcessGroup::id
  std::vector<model::Rank> ranks;  // in order
};

/// One side of one message.
struct PairedMessage {
  const model::CollectiveCall* call = nullptr;
  const MessagePair* pair = nullptr;
  std::int64_t number = 0;  // from 1; the same on both sides
};

struct PairedMessages {
  std::deque<MessagePair> pairs;  // messages point into it
  std::vector<PairedMessage> messages;
  std::size_t nameless = 0;   // the peer of one side is unknown
  std::size_t forgotten = 0;  // over, and what came before is not known
};

/// The nth send from one rank to another with one tag belongs to the nth such receive. Counts only
/// where the history is complete; else only messages that are not over can be told. `job` must
/// outlive the result.
PairedMessages pair_messages(const model::JobModel& job);

/// "send 0->1": ranks of the pair, as torch spells them.
std::string name_of_message(const PairedMessage& message);

}  // namespace ddpdoctor::imports

// SPDX-License-Identifier: Apache-2.0
#include "collector/graph/posted_messages.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <vector>

#include "base/text.h"

namespace ddpdoctor::graph {
namespace {

struct Message {
  std::string_view operation;  // "send", "recv"; empty = unknown
  std::optional<model::Rank> peer;
};

/// The messages that the frames have posted, and the position of the loop over them.
struct Posted {
  std::vector<Message> messages;
  std::optional<std::size_t> in_hand;  // index of the current handle of the loop
};

std::vector<Message> messages_of(std::string_view text) {
  std::vector<Message> messages;
  for (const std::string_view one : base::split(text, ',')) {
    const std::string_view item = base::trim(one);
    const std::string_view rank = item.substr(std::min(item.find(' ') + 1, item.size()));
    Message message;
    message.operation = item.starts_with("isend ")   ? "send"
                        : item.starts_with("irecv ") ? "recv"
                                                     : "";
    model::Rank peer = 0;
    const auto [end, error] = std::from_chars(rank.data(), rank.data() + rank.size(), peer);
    if (error == std::errc() && end == rank.data() + rank.size()) {
      message.peer = peer;
    }
    messages.push_back(message);
  }
  return messages;
}

/// The index of the current handle, if the loop has as many handles as messages were posted.
std::optional<std::size_t> in_hand(const stacks::Frame& frame, std::size_t messages) {
  if (frame.loops.empty()) {
    return std::nullopt;
  }
  const stacks::Iteration& loop = frame.loops.back();
  const bool whole = loop.total() == static_cast<std::int64_t>(messages) && !loop.loose;
  return whole && *loop.done > 0 ? std::optional(static_cast<std::size_t>(*loop.done - 1))
                                 : std::nullopt;
}

Posted posted(std::span<const stacks::Frame> frames) {
  for (const stacks::Frame& frame : frames) {
    for (const auto& [name, value] : frame.locals) {
      if (name != "P2POp") {
        continue;
      }
      Posted out{.messages = messages_of(value), .in_hand = std::nullopt};
      for (const stacks::Frame& inner :
           frames.first(static_cast<std::size_t>(&frame - frames.data()) + 1)) {
        if (!out.in_hand) {
          out.in_hand = in_hand(inner, out.messages.size());
        }
      }
      return out;
    }
  }
  return {};
}

}  // namespace

std::optional<model::Rank> peer_of_posted(std::span<const stacks::Frame> frames,
                                          std::string_view operation) {
  const Posted all = posted(frames);
  if (all.in_hand) {
    const Message& message = all.messages[*all.in_hand];
    return message.operation == operation ? message.peer : std::nullopt;
  }
  std::optional<model::Rank> only;
  for (const Message& message : all.messages) {
    if (message.operation != operation) {
      continue;
    }
    if (!message.peer || (only && only != message.peer)) {
      return std::nullopt;
    }
    only = message.peer;
  }
  return only;
}

bool has_posted_for(std::span<const stacks::Frame> frames, std::string_view operation,
                    model::Rank rank) {
  const std::string_view counterpart = operation == "send" ? "recv" : "send";
  const Posted all = posted(frames);
  return std::any_of(all.messages.begin(), all.messages.end(), [&](const Message& message) {
    return message.operation == counterpart && message.peer == rank;
  });
}

}  // namespace ddpdoctor::graph

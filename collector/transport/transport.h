// SPDX-License-Identifier: Apache-2.0
// Short messages between the nodes of a job and whoever reads all of them: published under a
// subject, delivered to who subscribed, and, where the engine can, kept for who comes late. Nothing
// here waits for a receiver: a message that cannot be sent now is lost, and its sender goes on.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace ddpdoctor::transport {

/// A message as it came. Anybody may have sent it.
struct Packet {
  std::string subject{};  // words with dots between them
  std::string reply{};    // where an answer is expected; empty = nowhere
  std::string data{};
  bool kept = false;  // not new: sent some time ago
};

/// No message may be longer; a NATS server takes up to 1 MB unless told otherwise.
inline constexpr std::size_t kLongestMessage = std::size_t{512} << 10U;

/// One connection. Its functions may be called by several threads.
class Transport {
 public:
  Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;
  Transport(Transport&&) = delete;
  Transport& operator=(Transport&&) = delete;
  virtual ~Transport() = default;

  /// Sends without waiting for anybody.
  virtual base::Result<void> publish(const std::string& subject, std::string_view data,
                                     const std::string& reply) = 0;
  /// From now on, what is published under `pattern` comes to next(): * is one word, > the rest.
  virtual base::Result<void> subscribe(const std::string& pattern) = 0;
  /// From now on, the newest message of each subject of `pattern` is kept, whoever sends it.
  virtual base::Result<void> keep(const std::string& pattern) = 0;
  /// Puts the messages that are kept under `pattern` before next().
  virtual base::Result<void> replay(const std::string& pattern) = 0;
  /// The next message, oldest first; nothing when none came in time.
  virtual std::optional<Packet> next(std::chrono::milliseconds limit) = 0;
  /// Whether messages go out now.
  [[nodiscard]] virtual bool connected() const = 0;
  /// Messages that came faster than they were read.
  [[nodiscard]] virtual std::uint64_t dropped() const = 0;
};

/// Whether a subject is meant by a pattern.
bool matches(std::string_view pattern, std::string_view subject);

/// Any text as one word of a subject: letters, digits, - and _; never empty.
std::string subject_word(std::string_view text);

}  // namespace ddpdoctor::transport

// SPDX-License-Identifier: Apache-2.0
// Short messages between the nodes of a job and its collectors: published under a subject,
// delivered to subscribers and, where the engine can, kept for late subscribers. Nothing waits for
// a receiver: a message that cannot be sent now is lost, and the sender continues.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "collector/transport/object_store.h"

namespace ddpdoctor::transport {

/// A received message. Its sender is not authenticated.
struct Packet {
  std::string subject{};  // words separated by dots
  std::string reply{};    // subject for an answer; empty = none expected
  std::string data{};
  bool kept = false;  // sent some time ago and kept by the server
};

/// Longest message; a NATS server accepts up to 1 MB by default.
inline constexpr std::size_t kLongestMessage = std::size_t{512} << 10U;

/// One connection. Several threads may call its functions.
class Transport {
 public:
  Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;
  Transport(Transport&&) = delete;
  Transport& operator=(Transport&&) = delete;
  virtual ~Transport() = default;

  /// Sends without waiting for a receiver.
  virtual base::Result<void> publish(const std::string& subject, std::string_view data,
                                     const std::string& reply) = 0;
  /// From now on, next() returns what is published under `pattern`; * is one word, > the rest.
  virtual base::Result<void> subscribe(const std::string& pattern) = 0;
  /// From now on, the server keeps the newest message of each subject of `pattern` from any sender.
  virtual base::Result<void> keep(const std::string& pattern) = 0;
  /// Queues the messages that the server keeps under `pattern`, before new ones.
  virtual base::Result<void> replay(const std::string& pattern) = 0;
  /// What the server keeps besides messages; nullptr = nothing. Valid as long as the connection.
  virtual ObjectStore* objects() = 0;
  /// The next message, oldest first; nothing if none arrives in time.
  virtual std::optional<Packet> next(std::chrono::milliseconds limit) = 0;
  /// True when messages can be sent now.
  [[nodiscard]] virtual bool connected() const = 0;
  /// Number of messages dropped because they arrived faster than they were read.
  [[nodiscard]] virtual std::uint64_t dropped() const = 0;
};

/// True when the pattern matches the subject.
bool matches(std::string_view pattern, std::string_view subject);

/// Turns any text into one word of a subject: letters, digits, - and _; never empty.
std::string subject_word(std::string_view text);

}  // namespace ddpdoctor::transport

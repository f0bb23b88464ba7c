// SPDX-License-Identifier: Apache-2.0
// One entry of torch's flight recorder: checks its bytes and makes a FlightRecord of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "collector/stacks/target/preloaded_memory.h"
#include "collector/stacks/torch/flight_recorder.h"

namespace ddpdoctor::stacks {

/// Reads entries in one attempt at the ring; all memory it reads is one snapshot.
class EntryReader {
 public:
  /// All three references must outlive this.
  EntryReader(RemoteMemory& memory, const TorchLayout& layout, const RecorderLimits& limits)
      : memory_(memory), layout_(layout), limits_(limits) {}

  /// Copies `count` entries at once; false if they cannot be read.
  bool preload(RemoteAddress first, std::uint64_t count);
  /// The entry's (id, epoch); nothing if unreadable.
  std::optional<std::pair<std::uint64_t, std::uint64_t>> identity(RemoteAddress entry);
  /// The entry without its call string; nothing if any of it is implausible.
  std::optional<RecorderEntry> entry(RemoteAddress address);
  /// Python frames of the call, innermost first; empty if there are none or they cannot be read.
  std::vector<CodePoint> calls(RemoteAddress entry);

 private:
  bool read_names(RemoteAddress entry, FlightRecord& record);
  bool read_numbers(RemoteAddress entry, FlightRecord& record);
  bool read_tensors(RemoteAddress entry, FlightRecord& record);
  std::optional<std::vector<std::string>> dtypes(RemoteAddress address, std::size_t count);

  PreloadedMemory memory_;
  const TorchLayout& layout_;
  const RecorderLimits& limits_;
  std::size_t sizes_read_ = 0;
  std::vector<std::int64_t> inputs_;  // temporary data of one entry
  std::vector<std::int64_t> outputs_;
  std::vector<std::int64_t> sizes_;
  std::vector<std::byte> types_;
};

}  // namespace ddpdoctor::stacks

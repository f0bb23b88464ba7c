// SPDX-License-Identifier: Apache-2.0
// One entry of torch's flight recorder: its bytes checked and turned into a FlightRecord.
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

/// Reads entries of one attempt at the ring; all memory it sees is one snapshot.
class EntryReader {
 public:
  /// All three must outlive this.
  EntryReader(RemoteMemory& memory, const TorchLayout& layout, const RecorderLimits& limits)
      : memory_(memory), layout_(layout), limits_(limits) {}

  /// Fetches `count` entries at once; false when they cannot be read.
  bool preload(RemoteAddress first, std::uint64_t count);
  /// The entry's (id, epoch); nothing when unreadable.
  std::optional<std::pair<std::uint64_t, std::uint64_t>> identity(RemoteAddress entry);
  /// The entry without its calls; nothing when any of it is implausible.
  std::optional<RecorderEntry> entry(RemoteAddress address);
  /// Python frames of the call, innermost first; empty when there are none or they cannot be read.
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
  std::vector<std::int64_t> inputs_;  // scratch of one entry
  std::vector<std::int64_t> outputs_;
  std::vector<std::int64_t> sizes_;
  std::vector<std::byte> types_;
};

}  // namespace ddpdoctor::stacks

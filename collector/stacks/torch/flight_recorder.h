// SPDX-License-Identifier: Apache-2.0
// torch's flight recorder, read from the target's memory: the newest collectives of every process
// group, with shapes and the Python call string of each. The target continues during the read;
// entries that changed are read again or omitted.
#pragma once

#include <compare>
#include <cstddef>
#include <string>
#include <vector>

#include "collector/stacks/stack.h"
#include "collector/stacks/target/remote_memory.h"
#include "collector/stacks/torch/layouts.h"

namespace ddpdoctor::stacks {

/// One Python frame of a recorded call, not yet decoded.
struct CodePoint {
  RemoteAddress code = 0;  // PyCodeObject
  int lasti = 0;           // offset into its bytecode, in bytes

  auto operator<=>(const CodePoint&) const = default;
};

/// An entry with the call string of its call, innermost first; `record.stack` is still empty.
struct RecorderEntry {
  FlightRecord record;
  std::vector<CodePoint> calls;
};

struct RecorderLimits {
  std::size_t entries = 4096;  // number of newest entries to keep
  // Number of newest entries whose frames are read: all of a ring of the usual size, because a host
  // runs up to a launch queue ahead of the call at which the ranks diverged.
  std::size_t calls = 2048;
  std::size_t frames = 48;  // of one entry, innermost first
};

struct RecorderReading {
  std::vector<RecorderEntry> entries;  // oldest first
  bool read = false;
  bool misfit = false;  // the layout does not match
  std::string problem;  // the reason, as a clause
};

/// Reads the recorder object at `recorder`. Everything is validated: enabled, counts, consecutive
/// ids, printable names, consistent shapes; one implausible entry means that the layout does not
/// match, and nothing is returned.
RecorderReading read_flight_recorder(RemoteMemory& memory, RemoteAddress recorder,
                                     const TorchLayout& layout, const RecorderLimits& limits = {});

/// The same for a torch release that may have no row. Without a matching row, a layout is accepted
/// if it gives complete calls with plausible times and no other layout gives any; an empty recorder
/// with an unknown layout is not read.
RecorderReading read_flight_recorder(RemoteMemory& memory, RemoteAddress recorder,
                                     const TorchLayouts& layouts,
                                     const RecorderLimits& limits = {});

}  // namespace ddpdoctor::stacks

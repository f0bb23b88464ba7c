// SPDX-License-Identifier: Apache-2.0
// torch's flight recorder, read where it lies in the target: the last collectives of every process
// group with shapes and the Python call that issued each. The target goes on while we read; what
// changed meanwhile is read again or left out.
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

/// An entry with the frames of its call, innermost first; `record.stack` is still empty.
struct RecorderEntry {
  FlightRecord record;
  std::vector<CodePoint> calls;
};

struct RecorderLimits {
  std::size_t entries = 4096;  // the newest are kept
  std::size_t calls = 256;     // newest entries whose frames are read
  std::size_t frames = 48;     // of one entry, innermost first
};

struct RecorderReading {
  std::vector<RecorderEntry> entries;  // oldest first
  bool read = false;
  bool misfit = false;  // not laid out like this
  std::string problem;  // why not, a clause
};

/// Reads the recorder at `recorder` (the object itself). Everything is validated: enabled, counts,
/// consecutive ids, printable names, shapes that add up; one implausible entry means that the
/// layout does not fit and nothing is shown.
RecorderReading read_flight_recorder(RemoteMemory& memory, RemoteAddress recorder,
                                     const TorchLayout& layout, const RecorderLimits& limits = {});

/// The same of a torch that may have no row. Without one, or where it does not fit, a layout holds
/// when calls were recorded that are whole and of our time, and no other layout shows any; an empty
/// recorder of an unknown layout is not read.
RecorderReading read_flight_recorder(RemoteMemory& memory, RemoteAddress recorder,
                                     const TorchLayouts& layouts,
                                     const RecorderLimits& limits = {});

}  // namespace ddpdoctor::stacks

// SPDX-License-Identifier: Apache-2.0
// The tracebacks of one stream, also where other lines fall between theirs and where several
// processes print theirs at once.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "collector/detectors/evidence/tracebacks.h"

namespace ddpdoctor::detectors {

/// In the order of their ends. Of a chain the last is kept, and the one before it where the last
/// only says that another rank failed.
std::vector<Traceback> read_tracebacks(const LogStream& stream);

/// What stands around a message of pytest.
struct PytestFrames {
  std::vector<model::CallSite> frames;  // outermost first
  std::string exception;                // its class, where the place below the message names it
};

/// The place that raised stands below the message, in pytest's short style above it.
PytestFrames pytest_frames(const LogStream& stream, std::size_t index);

}  // namespace ddpdoctor::detectors

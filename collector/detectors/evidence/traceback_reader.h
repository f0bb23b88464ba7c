// SPDX-License-Identifier: Apache-2.0
// Reads the tracebacks of one stream, even if other lines are mixed in or several processes print
// theirs at the same time.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "collector/detectors/evidence/tracebacks.h"

namespace ddpdoctor::detectors {

/// In the order of their ends. Of a chain, keeps the last one, or the previous one if the last only
/// reports another rank's failure.
std::vector<Traceback> read_tracebacks(const LogStream& stream);

/// The lines around a message of pytest.
struct PytestFrames {
  std::vector<model::CallSite> frames;  // outermost first
  std::string exception;                // its class, if the line below the message names it
};

/// The line that raised is below the message; in pytest's short style, above it.
PytestFrames pytest_frames(const LogStream& stream, std::size_t index);

}  // namespace ddpdoctor::detectors

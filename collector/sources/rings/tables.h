// SPDX-License-Identifier: Apache-2.0
// The tables of a ring besides its slots.
#pragma once

#include <string>
#include <vector>

#include "collector/sources/rings/bytes.h"
#include "collector/sources/rings/reader.h"

namespace ddpdoctor::sources {

/// Shared-memory segments that the process created or mapped.
std::vector<RecordedSegment> read_segments(const RingBytes& ring);

/// Waits of its threads in libc that have not ended.
std::vector<RecordedWait> read_waits(const RingBytes& ring);

/// The last part of its standard error.
std::string read_stderr(const RingBytes& ring);

}  // namespace ddpdoctor::sources

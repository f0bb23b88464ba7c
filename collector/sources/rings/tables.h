// SPDX-License-Identifier: Apache-2.0
// The tables of a ring that stand beside its slots.
#pragma once

#include <string>
#include <vector>

#include "collector/sources/rings/bytes.h"
#include "collector/sources/rings/reader.h"

namespace ddpdoctor::sources {

/// Shared-memory segments that the process made or mapped.
std::vector<RecordedSegment> read_segments(const RingBytes& ring);

/// Waits of its threads in libc that had not ended.
std::vector<RecordedWait> read_waits(const RingBytes& ring);

/// The tail of what it wrote to standard error.
std::string read_stderr(const RingBytes& ring);

}  // namespace ddpdoctor::sources

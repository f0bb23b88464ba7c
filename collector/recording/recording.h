// SPDX-License-Identifier: Apache-2.0
// A job as a file (.ddpd), which can be diagnosed again later on any machine. It is a trust
// boundary: a recording may come from anyone.
//
// Layout, little-endian: 8 bytes magic, u32 version, u32 zero; then frames, each a u32 size of what
// follows and a u32 size of its contents, then one zstd frame with zstd's own checksum; a frame of
// size 0 ends the file. The contents joined are one ddpdoctor.capture/1 document.
//
// The version rises when a reader of the old one could not read the new layout. Fields added to the
// capture do not raise it: readers ignore what they do not know.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "collector/model/job_model.h"

namespace ddpdoctor::recording {

inline constexpr std::uint32_t kVersion = 1;

/// Limit for the contents of all frames together; a larger file is refused before it is unpacked.
inline constexpr std::size_t kLargestContents = std::size_t{512} << 20U;

/// True when the bytes, or the first few of a file, begin like a recording of any version.
bool is_recording(std::string_view bytes);

/// The same job gives the same bytes. Secrets are omitted, as in a capture.
std::string save(const model::JobModel& job);

/// `name` is the file name for messages. A truncated or damaged file gives the frames before the
/// fault, and the coverage says what is missing. Refuses a file of which too little is left, one
/// that is too large, and versions that this program does not read.
base::Result<model::JobModel> load(std::string_view bytes, const std::string& name);

}  // namespace ddpdoctor::recording

// SPDX-License-Identifier: Apache-2.0
// A job as a file (.ddpd): what was seen once can be diagnosed again anywhere, for ever. The seam
// between machines, and a trust boundary: a recording may come from anybody.
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

/// What all frames may hold together; more is refused before it is unpacked.
inline constexpr std::size_t kLargestContents = std::size_t{512} << 20U;

/// Whether these bytes, or the first few of a file, begin like a recording of any version.
bool is_recording(std::string_view bytes);

/// The same job gives the same bytes. Secrets are left out, as in a capture.
std::string save(const model::JobModel& job);

/// `name` is the file for messages. Of what is cut or damaged the frames before the fault are used,
/// and the coverage says what is missing; refuses it when too little is left, what is too large,
/// and versions that this program does not read.
base::Result<model::JobModel> load(std::string_view bytes, const std::string& name);

}  // namespace ddpdoctor::recording

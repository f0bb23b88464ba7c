// SPDX-License-Identifier: Apache-2.0
// Bytes of a file that anybody may have written: only regular files are opened, sizes are capped.
// Texts come as UTF-8 without a mark, however they were written: readers know no other.
#pragma once

#include <cstddef>
#include <string>

#include "base/result.h"

namespace ddpdoctor::cli {

/// How much of a file is looked at to tell what it is.
inline constexpr std::size_t kHead = std::size_t{16} << 10U;

/// The first kHead bytes of a regular file.
base::Result<std::string> read_head(const std::string& path);

/// The last kHead bytes.
base::Result<std::string> read_tail(const std::string& path);

/// A whole regular file of at most 1 GiB.
base::Result<std::string> read_file(const std::string& path);

/// The same into `bytes`, whose memory is used again; yields when the file was written, in seconds
/// since the epoch.
base::Result<double> read_file_into(const std::string& path, std::string& bytes);

}  // namespace ddpdoctor::cli

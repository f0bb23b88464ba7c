// SPDX-License-Identifier: Apache-2.0
// Reads untrusted files: opens only regular files and limits sizes. Texts are converted to UTF-8
// without a byte order mark, the only form that readers know.
#pragma once

#include <cstddef>
#include <string>

#include "base/result.h"

namespace ddpdoctor::cli {

/// Number of bytes of a file from which its format is recognized.
inline constexpr std::size_t kHead = std::size_t{16} << 10U;

/// The first kHead bytes of a regular file.
base::Result<std::string> read_head(const std::string& path);

/// The last kHead bytes.
base::Result<std::string> read_tail(const std::string& path);

/// A whole regular file of at most 1 GiB.
base::Result<std::string> read_file(const std::string& path);

/// The same into `bytes`, whose memory is reused; returns when the file was written, in seconds
/// since the epoch.
base::Result<double> read_file_into(const std::string& path, std::string& bytes);

}  // namespace ddpdoctor::cli

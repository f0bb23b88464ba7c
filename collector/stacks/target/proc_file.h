// SPDX-License-Identifier: Apache-2.0
// Reads small files of /proc completely. They are generated on read, so one read shows one moment.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <sys/types.h>

#include "base/result.h"
#include "base/unique_fd.h"

namespace ddpdoctor::stacks {

/// Content of `path` relative to the open folder `folder` (AT_FDCWD for an absolute path); the
/// error text includes errno.
base::Result<std::string> read_proc_file(int folder, const std::string& path);

/// Value of the line "`key`:" of a status file, trimmed; nothing if it is missing.
std::optional<std::string_view> status_field(std::string_view status, std::string_view key);

/// Removes and returns the next word of a line; words are separated by blanks.
std::string_view next_word(std::string_view& text);

}  // namespace ddpdoctor::stacks

// SPDX-License-Identifier: Apache-2.0
// Small files below /proc, read whole. They are generated on read, so one read gives one moment.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <sys/types.h>

#include "base/result.h"
#include "base/unique_fd.h"

namespace ddpdoctor::stacks {

/// Content of `path` below the open folder `folder` (AT_FDCWD for an absolute path); the error's
/// text names errno.
base::Result<std::string> read_proc_file(int folder, const std::string& path);

/// Value of the line "`key`:" of a status file, without the tabs around it; nothing when there is
/// none.
std::optional<std::string_view> status_field(std::string_view status, std::string_view key);

/// The words of one line, separated by blanks.
std::string_view next_word(std::string_view& text);

}  // namespace ddpdoctor::stacks

// SPDX-License-Identifier: Apache-2.0
// What is said when a file or a folder of -o cannot be written.
#pragma once

#include <cstring>
#include <string>

#include <fmt/format.h>

#include "base/result.h"

namespace ddpdoctor::cli {

inline std::string reason(int error) {
  return std::strerror(error);  // NOLINT(concurrency-mt-unsafe): glibc's is per thread
}

inline auto cannot_write(const std::string& path, const std::string& why) {
  return base::failure(fmt::format("-o {} cannot be written: {}", path, why));
}

}  // namespace ddpdoctor::cli

// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <cstdlib>
#include <unistd.h>

#include <fmt/format.h>

namespace ddpdoctor::base {

void warn(std::string_view message) {
  fmt::print(stderr, "ddpdoctor: warning: {}\n", message);
}

void progress(std::string_view message) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nobody here calls setenv
  if (::isatty(STDERR_FILENO) == 1 || std::getenv("DDPDOCTOR_VERBOSE") != nullptr) {
    fmt::print(stderr, "ddpdoctor: {}\n", message);
  }
}

}  // namespace ddpdoctor::base

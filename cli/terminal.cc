// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <unistd.h>

#include <sys/ioctl.h>

namespace ddpdoctor::cli {

namespace {

constexpr std::size_t kNarrowest = 60;  // narrower, columns do not fit
constexpr std::size_t kWidest = 140;    // wider lines are hard to read
constexpr std::size_t kUnknown = 100;

}  // namespace

// NOLINTBEGIN(concurrency-mt-unsafe): no code here calls setenv
bool colour_wanted() {
  const char* no_color = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  return ::isatty(STDOUT_FILENO) == 1 && (no_color == nullptr || *no_color == '\0') &&
         (terminal == nullptr || std::string_view(terminal) != "dumb");
}
// NOLINTEND(concurrency-mt-unsafe)

std::size_t text_width() {
  struct winsize window{};
  if (::isatty(STDOUT_FILENO) == 1 && ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0 &&
      window.ws_col > 0) {
    return std::clamp<std::size_t>(window.ws_col, kNarrowest, kWidest);
  }
  return kUnknown;
}

}  // namespace ddpdoctor::cli

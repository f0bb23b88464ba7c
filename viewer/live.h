// SPDX-License-Identifier: Apache-2.0
// The screen of `ddpdoctor watch`: a pure function from a view to lines.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "collector/graph/live.h"

namespace ddpdoctor::viewer {

struct Screen {
  std::size_t width = 100;
  std::size_t height = 0;  // 0 = as many lines as it takes
  bool colour = false;
};

/// At most as many lines as the screen has, none wider than the screen; control characters in names
/// of the job are removed.
std::vector<std::string> live_lines(const graph::LiveView& view, const Screen& screen);

/// "12 ms", "3.4 s": the lag of a rank.
std::string lag_text(double seconds);

/// A bar of at most `columns` characters for a share of 1.
std::string bar(double share, std::size_t columns);

}  // namespace ddpdoctor::viewer

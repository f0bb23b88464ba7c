// SPDX-License-Identifier: Apache-2.0
// A message on stderr for work that takes longer than half a second.
#pragma once

#include <string>
#include <thread>

namespace ddpdoctor::cli {

/// Prints `message` once, unless it goes out of scope within half a second.
class Progress {
 public:
  explicit Progress(std::string message);

 private:
  std::jthread thread_;
};

}  // namespace ddpdoctor::cli

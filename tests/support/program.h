// SPDX-License-Identifier: Apache-2.0
// Runs the built ddpdoctor as a user would.
#pragma once

#include <string>
#include <vector>

namespace ddpdoctor::tests {

/// The result of a program.
struct Ended {
  int status = -1;  // exit status; 128 + signal if one ended it
  std::string out;
  std::string err;
};

/// Runs `words` with empty stdin and NO_COLOR set; killed after a minute.
Ended run(const std::vector<std::string>& words);

/// Runs the ddpdoctor of this build with these words.
Ended ddpdoctor(std::vector<std::string> words);

}  // namespace ddpdoctor::tests

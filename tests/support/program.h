// SPDX-License-Identifier: Apache-2.0
// Runs the built ddpdoctor as a user would.
#pragma once

#include <string>
#include <vector>

namespace ddpdoctor::tests {

/// What a program left.
struct Ended {
  int status = -1;  // exit status; 128 + signal when one ended it
  std::string out;
  std::string err;
};

/// Runs `words` with stdin empty and NO_COLOR set; ended by force after ten seconds.
Ended run(const std::vector<std::string>& words);

/// The ddpdoctor of this build, with these words.
Ended ddpdoctor(std::vector<std::string> words);

}  // namespace ddpdoctor::tests

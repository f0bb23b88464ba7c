// SPDX-License-Identifier: Apache-2.0
// Objects of calls as a process's memory shows them, for the questions about its source.
#pragma once

#include <span>
#include <string>

namespace ddpdoctor::program {

/// The object of a call as it was seen in the memory of a process; it says more than the source.
struct SeenObject {
  std::string file;
  int line = 0;            // of the call
  std::string expression;  // "self.incoming"
  std::string qualified;   // "queue.Queue"
  int number = 0;
};
using SeenObjects = std::span<const SeenObject>;

}  // namespace ddpdoctor::program

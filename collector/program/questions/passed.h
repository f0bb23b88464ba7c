// SPDX-License-Identifier: Apache-2.0
// What control has passed on its way to a line.
#pragma once

#include <functional>
#include <vector>

#include "collector/program/source_text.h"
#include "collector/program/syntax/node.h"

namespace ddpdoctor::program {

struct Passed {
  // On each way back from the line the nearest call that was asked for, in the order of the source.
  std::vector<Node> calls;
  bool from_start = false;  // on some way there is none between the function's start and the line
};

/// `is_one` says which calls are asked for. `here`: those of the line itself are passed, too.
Passed last_passed(const SourceText& text, int line, bool here,
                   const std::function<bool(Node)>& is_one);

}  // namespace ddpdoctor::program

// SPDX-License-Identifier: Apache-2.0
// The calls that control passed before it reached a line.
#pragma once

#include <functional>
#include <vector>

#include "collector/program/source_text.h"
#include "collector/program/syntax/node.h"

namespace ddpdoctor::program {

struct PassedCalls {
  // For each path back from the line, the nearest matching call; in source order.
  std::vector<Node> calls;
  bool from_start = false;  // on some path there is none between the function's start and the line
};

/// `is_one` says which calls match. `here`: calls on the line itself count as passed.
PassedCalls last_passed(const SourceText& text, int line, bool here,
                        const std::function<bool(Node)>& is_one);

}  // namespace ddpdoctor::program

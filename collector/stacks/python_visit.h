// SPDX-License-Identifier: Apache-2.0
// What a visitor of a process finds: its interpreter and the stacks it was captured with. The
// process runs on meanwhile; frames that have not run since are still where they were.
#pragma once

#include <vector>

#include "collector/stacks/python/reader.h"
#include "collector/stacks/stack.h"
#include "collector/stacks/target/target.h"

namespace ddpdoctor::stacks {

/// One process; everything lives as long as the visit.
struct PythonVisit {
  struct Thread {
    pid_t tid = 0;
    std::vector<PythonFrame> frames;  // innermost first
  };

  Target& target;
  PythonReader& python;
  const ProcessStacks& stacks;
  std::vector<Thread> threads;  // those with Python frames
};

}  // namespace ddpdoctor::stacks

// SPDX-License-Identifier: Apache-2.0
// The data that a visitor of a process gets: its interpreter and its captured stacks. The process
// continues meanwhile; frames of threads that have not run since are unchanged.
#pragma once

#include <vector>

#include "collector/stacks/python/reader.h"
#include "collector/stacks/stack.h"
#include "collector/stacks/target/target.h"

namespace ddpdoctor::stacks {

/// One process; all members are valid during the visit only.
struct PythonVisit {
  struct Thread {
    pid_t tid = 0;
    std::vector<PythonFrame> frames;  // innermost first
  };

  Target& target;
  PythonReader& python;
  const ProcessStacks& stacks;
  std::vector<Thread> threads;  // threads with Python frames
};

}  // namespace ddpdoctor::stacks

// SPDX-License-Identifier: Apache-2.0
// Whether the interpreter lies in memory as a row of the layout table claims. A debug, TRACE_REFS,
// alpha or patched build has the version of a row and another layout; following its offsets blindly
// would end the job. The known frames are those that call us right now: their code objects must
// have the type that the interpreter exports, and the line that PyCode_Addr2Line tells.
#pragma once

#include "agent/record/python_layout_table.h"

namespace ddpdoctor::agent {

/// Addresses and a function that the interpreter exports.
struct PythonSymbols {
  const void* code_type = nullptr;                   // PyCode_Type
  const void* string_type = nullptr;                 // PyUnicode_Type
  const void* bytes_type = nullptr;                  // PyBytes_Type
  const void* frame_type = nullptr;                  // PyFrame_Type; frames are objects up to 3.10
  int (*line_of)(void* code, int offset) = nullptr;  // PyCode_Addr2Line

  [[nodiscard]] bool complete() const {
    return code_type != nullptr && string_type != nullptr && bytes_type != nullptr &&
           frame_type != nullptr && line_of != nullptr;
  }
};

/// What the frames of a thread say of a layout.
enum class Verdict {
  kHolds,        // several frames, each as claimed
  kHoldsOnce,    // one frame as claimed: how frames are linked was not seen
  kSaysNothing,  // no frame here, or no descriptors left to read with
  kFails,        // something is not as claimed
};

/// Follows the frames of the calling thread, whose PyThreadState is `state`, as far as a call site
/// would. Changes nothing, allocates nothing, cannot fault. After kHolds and kHoldsOnce these very
/// frames may be read directly.
Verdict frames_are_as(const FrameLayout& layout, const PythonSymbols& python, const void* state);

}  // namespace ddpdoctor::agent

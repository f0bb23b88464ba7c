// SPDX-License-Identifier: Apache-2.0
// Verifies that the interpreter has the memory layout of its row in the table. A debug, TRACE_REFS,
// alpha or patched build has the version of a row but another layout; using its offsets unverified
// would crash the job. The known frames are the current callers: their code objects must have the
// type that the interpreter exports, and the line that PyCode_Addr2Line returns.
#pragma once

#include "agent/record/python_layout_table.h"

namespace ddpdoctor::agent {

/// Addresses, and one function, that the interpreter exports.
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

/// The result of checking the frames of a thread against a layout.
enum class Verdict {
  kHolds,        // several frames, all matching
  kHoldsOnce,    // one matching frame: the links between frames were not verified
  kSaysNothing,  // no frame here, or no descriptors left for reading
  kFails,        // something does not match
};

/// Follows the frames of the calling thread, whose PyThreadState is `state`, as far as a call site
/// would. Changes nothing, allocates nothing, cannot fault. After kHolds and kHoldsOnce these
/// frames may be read directly.
Verdict frames_are_as(const FrameLayout& layout, const PythonSymbols& python, const void* state);

}  // namespace ddpdoctor::agent

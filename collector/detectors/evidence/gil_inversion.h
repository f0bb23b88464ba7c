// SPDX-License-Identifier: Apache-2.0
// Two threads of a process that take the GIL and a native mutex in opposite order.
#pragma once

#include <optional>

#include "collector/detectors/finding.h"
#include "collector/model/job_model.h"

namespace ddpdoctor::detectors {

/// One thread has the GIL and waits for a mutex; the other is in the code that the mutex guards and
/// waits for the GIL.
struct GilInversion {
  const model::Thread* holder = nullptr;  // of the GIL
  const model::Thread* waiter = nullptr;  // for the GIL
  const model::Frame* taker = nullptr;    // the holder waits for the mutex of this function
  const model::Frame* inside = nullptr;  // the waiter is in this function; null: the mutex names it
  bool told = false;                     // a tool named the holder of the GIL
  bool owned = false;                    // the mutex itself names the waiter as its owner
};

/// Nothing if a third thread may hold the GIL, or the holder of the GIL may have released it.
std::optional<GilInversion> gil_inversion(const model::Process& process);

/// Adds the native functions in which the two threads wait, for stacks without Python.
void add_functions(const GilInversion& found, Finding& finding);

}  // namespace ddpdoctor::detectors

// SPDX-License-Identifier: Apache-2.0
// Asks everything our Python readers can answer, of memory that may hold anything: for
// hostile-memory tests and fuzzing.
#pragma once

#include <string>

#include "collector/stacks/python/frames.h"
#include "collector/stacks/python/runtime.h"

namespace ddpdoctor::test {

/// The number of frames, objects and texts seen; meaningless, but it keeps the work from being
/// optimised away.
inline std::size_t read_everything(stacks::RemoteMemory& memory, const stacks::PythonHome& home,
                                   stacks::RemoteAddress object) {
  std::size_t seen = 0;
  stacks::PythonObjects objects(memory, home.layout);
  stacks::FrameDecoder decoder(memory, home.layout, objects);
  objects.set_modules(stacks::python_modules(memory, home));
  objects.set_hash_secret(1, 2);
  std::size_t threads = 0;
  for (const stacks::PythonThread& thread : stacks::python_threads(memory, home)) {
    if (++threads > 4) {
      break;
    }
    seen +=
        decoder.decode(stacks::read_python_stack(memory, home.layout, thread.state.address)).size();
  }
  seen += stacks::python_gil_holder(memory, home).has_value() ? 1 : 0;
  seen += objects.module("threading").has_value() ? 1 : 0;
  seen += objects.repr(object).size();
  seen += objects.attribute(object, "_name").has_value() ? 1 : 0;
  seen += objects.item(object, "key").has_value() ? 1 : 0;
  seen += objects.items(object, 64).size() + objects.elements(object, 64).size();
  seen += objects.string(object).value_or("").size() + objects.bytes(object).value_or("").size();
  seen += objects.integer(object).has_value() || objects.real(object).has_value() ? 1 : 0;
  return seen;
}

}  // namespace ddpdoctor::test

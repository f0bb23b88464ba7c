// SPDX-License-Identifier: Apache-2.0
// Calls every query of our Python readers on memory that may contain anything: for hostile-memory
// tests and fuzzing.
#pragma once

#include <string>

#include "collector/stacks/python/addresses.h"
#include "collector/stacks/python/attributes.h"
#include "collector/stacks/python/containers.h"
#include "collector/stacks/python/frames.h"
#include "collector/stacks/python/generators.h"
#include "collector/stacks/python/iterators.h"
#include "collector/stacks/python/runtime.h"
#include "collector/stacks/python/scopes.h"

namespace ddpdoctor::test {

/// Reads names, attributes and containers of a frame, and of any object.
inline std::size_t read_values(stacks::PythonObjects& objects, stacks::RemoteAddress object) {
  std::size_t seen = 0;
  stacks::Attributes attributes(objects);
  for (const char* name : {"value", "name", "shape", "__len__"}) {
    seen += attributes.find(object, name).value != 0 ? 1 : 0;
  }
  seen += attributes.derives_from(objects.type_of(object), "m", "C") ? 1 : 0;
  seen += objects.class_name(object).size() + objects.own_attributes(object, 64).size();
  seen += stacks::length_of(objects, object).has_value() ? 1 : 0;
  seen += stacks::items_of(objects, object, 64).has_value() ? 1 : 0;
  seen += stacks::integer_text(objects, object).value_or("").size();
  seen += stacks::integer_truth(objects, object).has_value() ? 1 : 0;
  if (const auto parts = stacks::function_parts(objects, object)) {
    seen += stacks::Scope(objects, *parts, {object}).locals().size();
  }
  stacks::IterationReader iterations(objects);
  const stacks::RemoteAddress code = stacks::untagged(
      stacks::pointer(objects.memory(), stacks::at(object, objects.layout().frame_code)),
      objects.layout().version);
  for (const stacks::RemoteAddress generator : iterations.generators_of(object, code)) {
    seen += stacks::generator_frame(objects, generator) != 0 ? 1 : 0;
  }
  stacks::Scope scope(objects, {.address = object, .code = object});
  return seen + scope.locals().size() + (scope.find("x").value != 0 ? 1 : 0);
}

/// The number of frames, objects and texts read; it has no meaning, but keeps the work from being
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
  return seen + read_values(objects, object);
}

}  // namespace ddpdoctor::test

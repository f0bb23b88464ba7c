// SPDX-License-Identifier: Apache-2.0
#include "collector/stacks/python/contexts.h"

#include <algorithm>
#include <span>
#include <string>

#include "collector/stacks/python/addresses.h"
#include "collector/stacks/python/containers.h"
#include "collector/stacks/python/scopes.h"
#include "collector/stacks/python/value_layout.h"

namespace ddpdoctor::stacks {
namespace {

constexpr std::int32_t kDeepest = 64;              // words of a value stack
constexpr std::size_t kMostContextsOfAFrame = 16;  // of a frame, of an ExitStack

/// PyCodeObject.co_stacksize precedes the line; up to 3.10 the flags lie between the two.
std::int64_t offset_of_depth(const PythonLayout& layout) {
  return layout.code_first_line - (layout.version < kVersion311 ? 8 : 4);
}

/// The object of a bound `__exit__`; 0 for anything else.
RemoteAddress left_by(PythonObjects& objects, RemoteAddress exit) {
  RemoteMemory& memory = objects.memory();
  const std::string type = exit == 0 ? std::string() : objects.type_name(exit);
  if (type == "method") {
    const auto parts =
        function_parts(objects, pointer(memory, at(exit, value_layout::kFirstField)));
    return parts && parts->code_name == "__exit__"
               ? pointer(memory, at(exit, value_layout::kMethodSelf))
               : 0;
  }
  if (type != "builtin_function_or_method") {
    return 0;
  }
  const RemoteAddress definition = pointer(memory, at(exit, value_layout::kBuiltinDefinition));
  const auto name = memory.c_string(pointer(memory, definition), 16);
  return name && *name == "__exit__" ? pointer(memory, at(exit, value_layout::kBuiltinSelf)) : 0;
}

}  // namespace

std::vector<RemoteAddress> entered_contexts(PythonObjects& objects, const RawPythonFrame& frame) {
  const PythonLayout& layout = objects.layout();
  RemoteMemory& memory = objects.memory();
  std::vector<RemoteAddress> out;
  const auto depth = memory.get<std::int32_t>(at(frame.code, offset_of_depth(layout))).value_or(0);
  if (layout.version >= kVersion314 || depth <= 0) {
    return out;
  }
  const auto below = static_cast<std::int64_t>(local_names_of(objects, frame.code).names.size());
  std::vector<RemoteAddress> stack(static_cast<std::size_t>(std::min(depth, kDeepest)), 0);
  if (!memory.read(at(frame.address, layout.frame_locals + (below * 8)),
                   std::as_writable_bytes(std::span(stack)))) {
    return out;
  }
  for (const RemoteAddress one : stack) {
    if (const RemoteAddress context = left_by(objects, one); context != 0) {
      out.push_back(context);
    }
    if (out.size() >= kMostContextsOfAFrame) {
      break;
    }
  }
  return out;
}

std::vector<RemoteAddress> contexts_of_stack(PythonObjects& objects, RemoteAddress stack) {
  std::vector<RemoteAddress> out;
  const auto callbacks = objects.attribute(stack, "_exit_callbacks");
  const auto all = callbacks ? items_of(objects, *callbacks, kMostContextsOfAFrame) : std::nullopt;
  for (const RemoteAddress entry : all.value_or(std::vector<RemoteAddress>())) {
    const auto pair = objects.elements(entry, 2);  // whether it is synchronous, its __exit__
    if (const RemoteAddress context = pair.size() == 2 ? left_by(objects, pair[1]) : 0) {
      out.push_back(context);
    }
  }
  return out;
}

}  // namespace ddpdoctor::stacks

// SPDX-License-Identifier: Apache-2.0
#include "collector/graph/wrapped_forward.h"

#include "collector/program/libraries/libraries.h"

namespace ddpdoctor::graph {
namespace {

using program::Definition;

/// Some call constructs a module of torch with buffers, or registers one.
bool makes_buffers(const program::Files& files) {
  for (const program::File& file : files.all()) {
    if (file.facts->calls.contains("register_buffer")) {
      return true;
    }
    for (const auto& [name, one] : file.facts->calls) {
      const std::string dotted = program::dotted_name(one.call.field(program::Field::kFunction));
      const Definition is = dotted.empty() ? Definition{} : files.resolve(file, one.scope, dotted);
      if (is.kind == Definition::Kind::kLibrary && program::has_buffers(is.qualified)) {
        return true;
      }
    }
  }
  return false;
}

}  // namespace

bool WrappedForwards::may_have_buffers() const {
  if (!buffers_) {
    buffers_ = makes_buffers(files_);
  }
  return *buffers_;
}

std::optional<WrappedForward> WrappedForwards::of(program::Node callee, const program::File& file,
                                                  std::size_t scope) const {
  for (const program::Object& one : objects_.each_of(callee, file, scope)) {
    const program::CallRow* const row = one.kind == program::Object::Kind::kLibrary
                                            ? program::call_of_member(one.qualified, "forward")
                                            : nullptr;
    const bool unshards = row != nullptr && row->does == program::CallDoes::kUnshards;
    if (unshards || (row != nullptr && program::is_ddp(one.qualified) && may_have_buffers())) {
      return WrappedForward{.operation = std::string(row->collective), .unshards = unshards};
    }
  }
  return std::nullopt;
}

}  // namespace ddpdoctor::graph

// SPDX-License-Identifier: Apache-2.0
// Collectives without a call in the source: the forward of a wrapped model gathers its sharded
// parameters (FSDP) or broadcasts the module's buffers (DDP).
#pragma once

#include <optional>
#include <string>

#include "collector/program/origin/objects.h"

namespace ddpdoctor::graph {

struct WrappedForward {
  std::string operation;
  bool unshards = false;  // false: it broadcasts buffers
};

class WrappedForwards {
 public:
  /// `files` must outlive this.
  explicit WrappedForwards(const program::Files& files) : files_(files), objects_(files) {}

  /// Of a call whose callee is this expression; nothing if it is not a wrapped model, or if no
  /// module of the job may have buffers.
  [[nodiscard]] std::optional<WrappedForward> of(program::Node callee, const program::File& file,
                                                 std::size_t scope) const;

 private:
  [[nodiscard]] bool may_have_buffers() const;

  const program::Files& files_;
  program::Objects objects_;
  mutable std::optional<bool> buffers_;  // some module of the job may have them; read when needed
};

}  // namespace ddpdoctor::graph

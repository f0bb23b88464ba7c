// SPDX-License-Identifier: Apache-2.0
// How backends and recorders spell operations, and how PyTorch's users do.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "collector/model/rank_set.h"

namespace ddpdoctor::model {

/// An operation in PyTorch's spelling, with what the recorded name says beside it.
struct Operation {
  std::string name;  // "all_reduce"
  bool point_to_point = false;
  std::optional<Rank> own;  // group ranks, from "nccl:send 0->1"
  std::optional<Rank> peer;
};

/// Reads "gloo:_allgather_base", "nccl:send 0->1", "nccl:recv 1<-0", "AllReduce", "all_reduce".
/// Unknown names keep their spelling, without the backend before the colon.
Operation operation_of(std::string_view recorded);

/// "gloo" of "gloo:all_reduce"; empty when no backend is named.
std::string_view backend_of(std::string_view recorded);

/// "float32" for c10's "Float"; unknown names in lower case.
std::string dtype_of(std::string_view recorded);

}  // namespace ddpdoctor::model

// SPDX-License-Identifier: Apache-2.0
// Converts the names that backends and recorders use for operations to PyTorch's public names.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "collector/model/rank_set.h"

namespace ddpdoctor::model {

/// An operation by its PyTorch name, with the other parts of the recorded name.
struct Operation {
  std::string name;  // "all_reduce"
  bool point_to_point = false;
  std::optional<Rank> own;  // group ranks, from "nccl:send 0->1"
  std::optional<Rank> peer;
};

/// Reads "gloo:_allgather_base", "nccl:send 0->1", "nccl:recv 1<-0", "AllReduce", "all_reduce".
/// Unknown names are kept, without the backend before the colon.
Operation operation_of(std::string_view recorded);

/// "gloo" of "gloo:all_reduce"; empty if no backend is named.
std::string_view backend_of(std::string_view recorded);

/// "float32" for c10's "Float"; unknown names become lower case.
std::string dtype_of(std::string_view recorded);

}  // namespace ddpdoctor::model

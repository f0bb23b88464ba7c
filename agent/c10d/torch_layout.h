// SPDX-License-Identifier: Apache-2.0
// Where torch's structures keep what no function of torch tells, per release.
#pragma once

#include <cstdint>

namespace ddpdoctor::agent {

/// -1: this torch has no such field, or tells it through a function.
struct TorchLayout {
  int first;  // releases from first to last, 100 * major + minor
  int last;
  std::int8_t reduce_op;    // in the options of all_reduce, reduce and reduce_scatter
  std::int8_t reduce_root;  // in the options of reduce
  bool async;               // every operation's options hold asyncOp
  std::int16_t tensor_sizes;
  std::int16_t tensor_count;
  std::int16_t tensor_dtype;
};

/// The row of a release by its version text ("2.13.0+cpu"); null when its layout is not known.
const TorchLayout* layout_of_torch(const char* version);

}  // namespace ddpdoctor::agent

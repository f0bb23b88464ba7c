// SPDX-License-Identifier: Apache-2.0
// What is known of an at::Tensor without torch's headers: through torch's own C functions, or in
// releases that have none by what lies where in it.
#pragma once

#include <cstdint>

namespace ddpdoctor::agent {

struct TensorFacts {
  std::int64_t count = -1;
  std::uint8_t dtype = 255;  // c10::ScalarType, 255 = unknown
  std::int64_t dimensions = -1;
  const std::int64_t* sizes = nullptr;
};

/// False when this torch has no functions for it and its tensors are of an unknown layout.
bool tensors_tell();
/// Facts of the tensor whose handle (at::Tensor, a pointer to its implementation) lies at
/// `address`. A count of -1: it could not be read.
TensorFacts tensor_facts(std::uint64_t address);

}  // namespace ddpdoctor::agent

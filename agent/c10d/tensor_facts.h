// SPDX-License-Identifier: Apache-2.0
// Facts about an at::Tensor without torch's headers: through torch's own C functions or, in
// releases without them, from the memory layout.
#pragma once

#include <cstdint>

namespace ddpdoctor::agent {

struct TensorFacts {
  std::int64_t count = -1;
  std::uint8_t dtype = 255;  // c10::ScalarType, 255 = unknown
  std::int64_t dimensions = -1;
  const std::int64_t* sizes = nullptr;
};

/// False if this torch has no such functions and its tensors have an unknown layout.
bool tensors_tell();
/// Facts about the tensor whose handle (at::Tensor, a pointer to its implementation) is at
/// `address`. A count of -1 means that it could not be read.
TensorFacts tensor_facts(std::uint64_t address);

}  // namespace ddpdoctor::agent

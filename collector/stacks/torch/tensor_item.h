// SPDX-License-Identifier: Apache-2.0
// The number in a tensor of one element, as `tensor.item()` gives it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>

#include "collector/stacks/python/objects.h"
#include "collector/stacks/torch/layouts.h"

namespace ddpdoctor::stacks {

using TensorNumber = std::variant<bool, std::int64_t, double>;

/// Of an object of this Python type, a torch.Tensor or Parameter whose element lies in the memory
/// of the processor; nothing for other objects, other devices, other counts of elements and complex
/// or quantized types. C++ run-time type information proves the tensor and its storage before they
/// are read.
std::optional<TensorNumber> tensor_item(PythonObjects& objects, const TorchLayouts& layouts,
                                        RemoteAddress object, std::string_view type_name);

}  // namespace ddpdoctor::stacks

// SPDX-License-Identifier: Apache-2.0
// The number in a one-element tensor, as returned by `tensor.item()`.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>

#include "collector/stacks/python/objects.h"
#include "collector/stacks/torch/layouts.h"

namespace ddpdoctor::stacks {

using TensorNumber = std::variant<bool, std::int64_t, double>;

/// For an object of this Python type: a torch.Tensor or Parameter with one element in CPU memory.
/// Nothing for other objects, devices and element counts, and for complex or quantized types. C++
/// run-time type information verifies the tensor and its storage before they are read.
std::optional<TensorNumber> tensor_item(PythonObjects& objects, const TorchLayouts& layouts,
                                        RemoteAddress object, std::string_view type_name);

}  // namespace ddpdoctor::stacks

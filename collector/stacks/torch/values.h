// SPDX-License-Identifier: Apache-2.0
// torch's objects as text, for the locals of a blocked call: "Tensor(1000x7, float32)",
// "<ProcessGroup 0>", "ReduceOp.SUM". The model parses these texts.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "collector/stacks/python/objects.h"
#include "collector/stacks/torch/layouts.h"

namespace ddpdoctor::stacks {

/// Renders a torch object of this type; nothing if the type is not torch's. An object that cannot
/// be read, or has an unknown layout, is only named: "<Tensor>".
std::optional<std::string> torch_repr(PythonObjects& objects, const TorchLayouts& layouts,
                                      const std::map<RemoteAddress, std::string>& group_names,
                                      RemoteAddress object, std::string_view type_name);

}  // namespace ddpdoctor::stacks

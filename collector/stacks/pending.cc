// SPDX-License-Identifier: Apache-2.0
// Stands in for torch_state until it lands; goes away then.
#include "collector/stacks/torch_state.h"

namespace ddpdoctor::stacks {

__attribute__((weak)) std::optional<TorchState> read_torch_state(Target& /*target*/,
                                                                 PythonReader* /*python*/) {
  return std::nullopt;
}

}  // namespace ddpdoctor::stacks

// SPDX-License-Identifier: Apache-2.0
// Sizes and types of a call in the notation of torch's recorder, which has both inputs and outputs;
// the model stores the side that must be equal on all ranks.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "collector/model/collective.h"

namespace ddpdoctor::imports {

using Sizes = std::vector<std::vector<std::int64_t>>;

struct SizesOfCall {
  Sizes input;
  Sizes output;
};

/// Empty lists if a size is unknown; a list with an empty shape where torchfrtrace multiplies.
SizesOfCall sizes_of(const model::CollectiveCall& call, std::size_t group_size);

/// "Float" for "float32"; a name unknown to c10 is unchanged.
std::string recorded_dtype(std::string_view dtype);

}  // namespace ddpdoctor::imports

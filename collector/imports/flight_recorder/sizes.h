// SPDX-License-Identifier: Apache-2.0
// Sizes and types of a call as torch's recorder writes them: both sides, where the model keeps the
// one that all ranks must pass alike.
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

/// Empty lists where a size is unknown; one that holds nothing where torchfrtrace multiplies.
SizesOfCall sizes_of(const model::CollectiveCall& call, std::size_t group_size);

/// "Float" for "float32"; a name that c10 does not have stays as it is.
std::string recorded_dtype(std::string_view dtype);

}  // namespace ddpdoctor::imports

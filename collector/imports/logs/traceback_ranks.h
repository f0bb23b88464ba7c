// SPDX-License-Identifier: Apache-2.0
// Lines without a rank, and a traceback whose exception names the rank that raised it: "NCCL
// communicator was aborted on rank 2".
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace ddpdoctor::imports {

/// The text with "[rank2]: " before the lines of such tracebacks; nullopt if it has none.
std::optional<std::string> with_ranks_of_tracebacks(std::string_view text);

}  // namespace ddpdoctor::imports

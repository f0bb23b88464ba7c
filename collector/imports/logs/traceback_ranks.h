// SPDX-License-Identifier: Apache-2.0
// Tracebacks without a rank in front of their lines: the exception names it ("NCCL communicator was
// aborted on rank 2"), or the message above does ("[rank1] ERROR in step 11").
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace ddpdoctor::imports {

/// The text with "[rank2]: " before the lines of such tracebacks; nullopt if it has none.
std::optional<std::string> with_ranks_of_tracebacks(std::string_view text);

}  // namespace ddpdoctor::imports

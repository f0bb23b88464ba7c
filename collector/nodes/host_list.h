// SPDX-License-Identifier: Apache-2.0
// Expands "node1,gpu[03-05]" to hosts. The names are used in command lines: characters with a
// meaning for a shell or program are refused.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ddpdoctor::nodes {

/// A longer list is refused.
inline constexpr std::size_t kMostNodes = 1024;

/// Hosts in the order given, each once.
base::Result<std::vector<std::string>> expand_hosts(std::string_view list);

/// True if the name consists of letters, digits and ._:@%- and does not begin with a dash: nothing
/// that a shell interprets.
bool is_host_name(std::string_view name);

}  // namespace ddpdoctor::nodes

// SPDX-License-Identifier: Apache-2.0
// "node1,gpu[03-05]" → the hosts. Names go into command lines: what a shell or a program could take
// for something else is refused.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ddpdoctor::nodes {

/// More nodes than are asked at once are refused.
inline constexpr std::size_t kMostNodes = 1024;

/// Hosts in the order given, each once.
base::Result<std::vector<std::string>> expand_hosts(std::string_view list);

/// Letters, digits and ._:@%- only, and no dash at its beginning: nothing a shell reads.
bool is_host_name(std::string_view name);

}  // namespace ddpdoctor::nodes

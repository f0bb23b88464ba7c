// SPDX-License-Identifier: Apache-2.0
// Labels that a launcher puts before every line of a log, and that cannot be recognized from one
// line alone: a number, the name of a host.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ddpdoctor::imports {

struct Labels {
  std::string text;  // with "[rank3]: " instead of such labels, or without them; empty = no labels
  std::string warning;             // the assumption that was made
  std::vector<std::string> hosts;  // machines and containers that the labels name
};

/// "3: " of srun --label and "[3] " of MPICH are ranks; "node3: " of pdsh is a host, "trainer-0  |
/// " of docker compose and "trainer-0 torch " of stern are containers, "Nov 22 19:15:00 node0
/// python[7]: " of journald is a process. Several hosts, containers or processes count as ranks, in
/// the order of names, if nothing else in the text names ranks. Other prefixes of one shape:
/// prefix_shape.h; names of services without numbers: column_labels.h.
Labels with_ranks_named(std::string_view text);

}  // namespace ddpdoctor::imports

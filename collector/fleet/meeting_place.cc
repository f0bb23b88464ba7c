// SPDX-License-Identifier: Apache-2.0
#include "collector/fleet/meeting_place.h"

#include <fmt/format.h>

#include "collector/sources/processes/candidates.h"

namespace ddpdoctor::fleet {

std::string meeting_place(pid_t rank) {
  sources::Candidates candidates(sources::read_process_table());
  if (candidates.row(rank) == nullptr) {
    return {};
  }
  const auto& environment = candidates.completed(rank).environment;
  const auto address = environment.find("MASTER_ADDR");
  const auto port = environment.find("MASTER_PORT");
  return address == environment.end() || port == environment.end()
             ? std::string()
             : fmt::format("{}:{}", address->second, port->second);
}

}  // namespace ddpdoctor::fleet

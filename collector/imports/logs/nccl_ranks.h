// SPDX-License-Identifier: Apache-2.0
// The ranks of the processes and GPUs that write NCCL's lines.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "collector/imports/logs/fabric_text.h"

namespace ddpdoctor::imports {

/// "nranks 16", and "nRanks 16" of some versions, in a line about a communicator.
std::optional<std::int64_t> comm_size_in(std::string_view info);

/// From "comm 0x… rank 3 nranks 16" of NCCL_DEBUG=INFO (of the largest communicators), and from
/// nccl-tests' list of devices; without both, from NCCL's own name of a proxy. One process may have
/// several GPUs, each with a rank.
class NcclRanks {
 public:
  explicit NcclRanks(std::string_view log);

  /// The rank of the only GPU of the tag's process, or of the tag's GPU.
  [[nodiscard]] std::optional<model::Rank> of(const NcclTag& tag) const;

 private:
  std::map<HostPid, std::map<std::int64_t, model::Rank>> known_;  // by GPU, -1 if it is unknown
};

}  // namespace ddpdoctor::imports

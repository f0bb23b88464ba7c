// SPDX-License-Identifier: Apache-2.0
// Transfers of InfiniBand or RoCE that failed on both machines of a job: the link between them, not
// one side, is at fault.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "collector/model/job_model.h"

namespace ddpdoctor::detectors {

/// The network adapters that NCCL uses.
struct Adapters {
  std::set<std::string> names;  // "mlx5_bond_0"
  bool roce = false;            // one of them is an Ethernet adapter
};

/// Two machines of which each reports failed transfers.
struct TwoEnds {
  std::set<std::string> hosts;
  Adapters adapters;

  /// "node1 and node2 (mlx5_0, RoCE)".
  [[nodiscard]] std::string text() const;
  [[nodiscard]] std::string fix() const;
};

/// Nothing if NCCL runs on further machines: the other ends may be there.
std::optional<TwoEnds> both_ends(const model::JobModel& job,
                                 const std::vector<const model::Fact*>& transfers);

}  // namespace ddpdoctor::detectors

// SPDX-License-Identifier: Apache-2.0
// Addresses of the rendezvous in one line of output.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collector/model/job_model.h"

namespace ddpdoctor::detectors {

/// A value, and how it was written.
struct ShownAddress {
  std::string name;      // "MASTER_PORT", "--rdzv-endpoint"
  std::string notation;  // values of different notations may rightly differ
  std::string value;     // "29501", "10.0.0.1:29500"
};

std::vector<ShownAddress> addresses_in(std::string_view line);

/// The address of the store that a message of torch's clients, or a setting of torchrun, names:
/// "10.0.0.1:29400", "node1" (without a port), "[fe80::1]:29400"; empty if the line names none.
std::string store_address(std::string_view line);

/// The number behind "--nnodes=", "nnodes: ", "min_nodes        : ", "group_world_size=" (of
/// torchrun's agents); 0 if there is none.
int number_of_nodes(std::string_view line);

/// "--node_rank=1", "machine_rank: 1".
std::optional<int> number_of_node(std::string_view line);

/// "RANK=1", "'RANK': '1'", "rank 1": the process that prints its environment.
std::optional<model::Rank> rank_variable(std::string_view line);

}  // namespace ddpdoctor::detectors

// SPDX-License-Identifier: Apache-2.0
#include "collector/model/operation_kinds.h"

#include <algorithm>
#include <array>
#include <utility>

namespace ddpdoctor::model {
namespace {

using Row = std::pair<std::string_view, OperationKind>;

constexpr OperationKind kGathers = {.one_input_size = true, .gathers = true};
constexpr OperationKind kReduceScatters = {
    .one_input_size = true, .reduces = true, .scatters = true};
constexpr OperationKind kExchanges = {.exchanges = true};

constexpr std::array<Row, 12> kKinds = {{
    {"all_reduce", {.one_input_size = true, .keeps_size = true, .reduces = true}},
    {"reduce", {.one_input_size = true, .keeps_size = true, .reduces = true, .has_root = true}},
    {"broadcast", {.one_input_size = true, .keeps_size = true, .has_root = true}},
    {"all_gather", kGathers},
    {"all_gather_into_tensor", kGathers},
    {"_allgather_base", kGathers},
    {"gather", {.one_input_size = true, .has_root = true, .gathers = true}},
    {"scatter", {.has_root = true, .scatters = true}},
    {"reduce_scatter", kReduceScatters},
    {"reduce_scatter_tensor", kReduceScatters},
    {"all_to_all", kExchanges},
    {"all_to_all_single", kExchanges},
}};

}  // namespace

OperationKind kind_of(std::string_view operation) {
  if (operation.starts_with("comm_")) {  // comm_init, comm_split, comm_free, …
    return {.makes_communicator = true};
  }
  operation.remove_prefix(operation.starts_with('i') ? 1 : 0);
  const auto row = std::ranges::find(kKinds, operation, &Row::first);
  return row == kKinds.end() ? OperationKind() : row->second;
}

}  // namespace ddpdoctor::model

// SPDX-License-Identifier: Apache-2.0
// Packs the report for the page: ranks repeat the same processes, frames and progress, which become
// tables that are referred to by index. elements.js unpacks them.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

namespace ddpdoctor::viewer {

/// Stores equal values once, by index.
class Table {
 public:
  std::size_t index_of(nlohmann::ordered_json value) {
    const auto [at, is_new] = known_.try_emplace(value.dump(), values_.size());
    if (is_new) {
      values_.push_back(std::move(value));
    }
    return at->second;
  }
  nlohmann::ordered_json take() {
    return std::move(values_);
  }

 private:
  std::map<std::string, std::size_t> known_;
  nlohmann::ordered_json values_ = nlohmann::ordered_json::array();
};

/// What a page that would be too large leaves out.
struct Packing {
  bool locals = true;
  bool helper_threads = true;  // all but the main thread
};

/// `frames`, `stacks`, `threads`, `commands`, `process_kinds` and `process_hosts` become tables; a
/// process is [rank, pid, ppid, host, kind, [tid - pid of each thread]].
void pack_processes(nlohmann::ordered_json& report, const Packing& packing);
/// The ranks of a group become ranges, its progress [[ranges, enqueued, completed]…].
void pack_groups(nlohmann::ordered_json& groups);
/// The nodes of the stack tree have ranges of ranks.
void pack_tree(nlohmann::ordered_json& nodes);
/// Edges become [[from…], [to…], why], once for each set of equal ones; nodes follow from the
/// edges.
void pack_edges(nlohmann::ordered_json& wait_for);

}  // namespace ddpdoctor::viewer

// SPDX-License-Identifier: Apache-2.0
#include "viewer/formats/html_pack.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/text.h"
#include "collector/model/questions.h"
#include "viewer/stack_folding.h"

namespace ddpdoctor::viewer {

namespace {

using Json = nlohmann::ordered_json;

void mark_user(Json& frame) {
  if (frame["language"] == "python" && frame.contains("file") &&
      model::is_user_file(frame["file"].get_ref<const std::string&>())) {
    frame["user"] = true;
  }
}

/// Removes a field and returns it; null if it is absent.
Json taken(Json& object, const char* key) {
  const auto field = object.find(key);
  if (field == object.end()) {
    return nullptr;
  }
  Json out = std::move(*field);
  object.erase(field);
  return out;
}

}  // namespace

// NOLINTNEXTLINE(misc-no-recursion): the report's tree is bounded
void pack_tree(Json& nodes) {
  for (Json& node : nodes) {
    mark_user(node);
    if (is_wrapper(node["function"].get_ref<const std::string&>())) {
      node["wrapper"] = true;
    }
    node["ranks"] = base::ranges(node["ranks"].get<std::vector<int>>());
    pack_tree(node["children"]);
  }
}

void pack_processes(Json& report, const Packing& packing) {
  Table frames;
  Table stacks;
  Table commands;
  Table threads;  // without their tids
  Table hosts;
  Table kinds;  // processes that differ only in rank, pid, ppid, host and tids
  for (Json& process : report["processes"]) {
    Json tids = Json::array();
    const auto pid = process["pid"].get<std::int64_t>();
    process["command"] = commands.index_of(std::move(process["command"]));
    Json& all = process["threads"];
    if (!packing.helper_threads && all.size() > 1) {
      all.erase(all.begin() + 1, all.end());
    }
    for (Json& thread : all) {
      Json stack = Json::array();
      for (Json& frame : thread["frames"]) {
        mark_user(frame);
        if (!packing.locals) {
          frame.erase("locals");
        }
        stack.push_back(frames.index_of(std::move(frame)));
      }
      thread["frames"] = stacks.index_of(std::move(stack));
      tids.push_back(taken(thread, "tid").get<std::int64_t>() - pid);
      thread = threads.index_of(std::move(thread));
    }
    Json rank = taken(process, "rank");
    Json ppid = taken(process, "ppid");
    const std::size_t host = hosts.index_of(taken(process, "host"));
    process.erase("pid");
    const std::size_t kind = kinds.index_of(std::move(process));
    process = Json::array({std::move(rank), pid, std::move(ppid), host, kind, std::move(tids)});
  }
  report["frames"] = frames.take();
  report["stacks"] = stacks.take();
  report["threads"] = threads.take();
  report["commands"] = commands.take();
  report["process_hosts"] = hosts.take();
  report["process_kinds"] = kinds.take();
}

void pack_groups(Json& groups) {
  for (Json& group : groups) {
    const auto ranks = group["ranks"].get<std::vector<int>>();
    // The order of members has a meaning: only a set in rank order becomes ranges.
    if (std::adjacent_find(ranks.begin(), ranks.end(), std::greater_equal<>()) == ranks.end()) {
      group["ranks"] = base::ranges(ranks);
    }
    std::map<std::pair<std::int64_t, std::int64_t>, std::vector<int>> at;
    for (const Json& progress : group["progress"]) {
      at[{progress["enqueued"].get<std::int64_t>(), progress["completed"].get<std::int64_t>()}]
          .push_back(progress["rank"].get<int>());
    }
    group["progress"] = Json::array();
    for (const auto& [calls, those] : at) {
      group["progress"].push_back(Json::array({base::ranges(those), calls.first, calls.second}));
    }
  }
}

void pack_edges(Json& wait_for) {
  std::map<std::string, std::pair<std::string, Json>> of_rank;  // by source and reason
  std::vector<std::string> order;
  for (const Json& edge : wait_for["edges"]) {
    const auto& from = edge["from"].get_ref<const std::string&>();
    const auto& why = edge["why"].get_ref<const std::string&>();
    const std::string key = from + '\n' + why;
    auto [at, is_new] = of_rank.try_emplace(key, from, Json::array());
    if (is_new) {
      order.push_back(key);
    }
    at->second.second.push_back(edge["to"]);
  }
  std::map<std::string, std::size_t> index;
  Json packed = Json::array();
  for (const std::string& key : order) {
    const auto& [from, to] = of_rank.at(key);
    const std::string why = key.substr(from.size() + 1);
    const auto [at, is_new] = index.try_emplace(why + '\n' + to.dump(), packed.size());
    if (is_new) {
      packed.push_back(Json::array({Json::array(), to, why}));
    }
    packed[at->second][0].push_back(from);
  }
  wait_for["edges"] = std::move(packed);
  wait_for.erase("nodes");
}

}  // namespace ddpdoctor::viewer

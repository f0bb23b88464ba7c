// SPDX-License-Identifier: Apache-2.0
#include "viewer/wait_picture.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/model/questions.h"
#include "viewer/rank_words.h"

namespace ddpdoctor::viewer {

namespace {

using graph::CollectiveWait;
using graph::Edge;

std::optional<model::Rank> rank_of(std::string_view node) {
  constexpr std::string_view kPrefix = "rank:";
  constexpr std::size_t kMostDigits = 8;
  if (!node.starts_with(kPrefix) || node.size() == kPrefix.size() ||
      node.size() > kPrefix.size() + kMostDigits) {
    return std::nullopt;
  }
  model::Rank rank = 0;
  for (const char digit : node.substr(kPrefix.size())) {
    if (digit < '0' || digit > '9') {
      return std::nullopt;
    }
    rank = rank * 10 + (digit - '0');
  }
  return rank;
}

/// Names for people of threads and processes.
class Labels {
 public:
  explicit Labels(const model::JobModel& job) {
    const model::Observation* now = model::latest(job);
    if (now == nullptr) {
      return;
    }
    for (const model::Process& process : now->processes) {
      const std::string owner = process.rank ? fmt::format("rank {}", *process.rank)
                                             : fmt::format("process {}", process.pid);
      const bool helper = process.role == model::Role::kOther || process.role == model::Role::kRank;
      const std::string role = helper ? "process" : std::string(model::role_name(process.role));
      names_[fmt::format("pid:{}", process.pid)] =
          fmt::format("{} {}{}", role, process.pid, process.rank ? " of " + owner : "");
      if (process.role == model::Role::kLauncher) {
        launchers_.insert(fmt::format("pid:{}", process.pid));
      }
      for (const model::Thread& thread : process.threads) {
        names_[fmt::format("thread:{}", thread.tid)] =
            fmt::format("thread {} of {}",
                        thread.name.empty() ? std::to_string(thread.tid) : thread.name, owner);
      }
    }
  }

  [[nodiscard]] std::string of(const std::string& node) const {
    if (const auto rank = rank_of(node)) {
      return fmt::format("rank {}", *rank);
    }
    if (const auto found = names_.find(node); found != names_.end()) {
      return found->second;
    }
    return node.starts_with("key:") ? "store key " + node.substr(4) : node;
  }

  [[nodiscard]] bool is_launcher(const std::string& node) const {
    return launchers_.contains(node);
  }

 private:
  std::map<std::string, std::string> names_;
  std::set<std::string> launchers_;
};

/// The relations to draw: complete waits in collectives, and all other edges.
struct Relations {
  std::vector<CollectiveWait> collectives;
  std::vector<Edge> edges;
};

bool covers(const CollectiveWait& wait, const Edge& edge, std::optional<model::Rank> from) {
  return from && edge.why == wait.why && wait.waiting.contains(*from);
}

Relations relations(const graph::WaitForGraph& graph, const Labels& labels) {
  Relations out{.collectives = graph.collective_waits(), .edges = {}};
  std::set<std::string> waited_for;
  std::set<std::string> waits_for_more;  // than a child
  for (const Edge& edge : graph.edges()) {
    waited_for.insert(edge.to);
    if (edge.kind != graph::EdgeKind::kProcess) {
      waits_for_more.insert(edge.from);
    }
  }
  for (const Edge& edge : graph.edges()) {
    const bool idle_launcher = labels.is_launcher(edge.from) && !waited_for.contains(edge.from) &&
                               !waits_for_more.contains(edge.from);
    const auto from = rank_of(edge.from);
    const bool covered = edge.kind == graph::EdgeKind::kCollective &&
                         std::any_of(out.collectives.begin(), out.collectives.end(),
                                     [&](const auto& wait) { return covers(wait, edge, from); });
    if (!idle_launcher && !covered) {
      out.edges.push_back(edge);
    }
  }
  return out;
}

/// The relations of each node and its role in them: nodes with equal signatures form one box.
std::map<std::string, std::set<std::string>> signatures(const Relations& all) {
  std::map<std::string, std::set<std::string>> out;
  const auto mark = [&out](const model::RankSet& ranks, const std::string& word) {
    for (const model::Rank rank : ranks) {
      out[fmt::format("rank:{}", rank)].insert(word);
    }
  };
  for (std::size_t i = 0; i < all.collectives.size(); ++i) {
    mark(all.collectives[i].waiting, fmt::format("waits in {}", i));
    mark(all.collectives[i].missing, fmt::format("misses in {}", i));
  }
  for (const Edge& edge : all.edges) {
    out[edge.from].insert("> " + edge.to + '\n' + edge.why);
    out[edge.to].insert("< " + edge.from + '\n' + edge.why);
  }
  return out;
}

std::string label_of(const WaitBox& box, const Labels& labels) {
  if (!box.ranks.empty()) {
    return rank_words(box.ranks);
  }
  if (box.nodes.size() == 1) {
    return base::printable(labels.of(box.nodes.front()));
  }
  const bool threads = box.nodes.front().starts_with("thread:");
  const bool processes = box.nodes.front().starts_with("pid:");
  return fmt::format("{} {}", box.nodes.size(),
                     threads ? "threads" : (processes ? "processes" : "objects"));
}

/// Numeric order of ranks; "rank:10" follows "rank:9".
bool comes_before(const std::string& a, const std::string& b) {
  const auto rank_a = rank_of(a);
  const auto rank_b = rank_of(b);
  if (rank_a && rank_b) {
    return *rank_a < *rank_b;
  }
  return rank_a.has_value() != rank_b.has_value() ? rank_a.has_value() : a < b;
}

struct Boxes {
  std::vector<WaitBox> boxes;
  std::map<std::string, std::size_t> of_node;
};

Boxes boxes(const Relations& all, const Labels& labels, const model::RankSet& culprits) {
  std::map<std::string, std::vector<std::string>> alike;
  for (const auto& [node, words] : signatures(all)) {
    const auto rank = rank_of(node);
    const std::string kind = rank ? "rank" : node.substr(0, node.find(':'));
    std::string key = kind + (rank && culprits.contains(*rank) ? " culprit" : "");
    for (const std::string& word : words) {
      key += '\n' + word;
    }
    alike[key].push_back(node);
  }
  std::vector<std::vector<std::string>> ordered;
  for (auto& [key, nodes] : alike) {
    std::sort(nodes.begin(), nodes.end(), comes_before);
    ordered.push_back(std::move(nodes));
  }
  std::sort(ordered.begin(), ordered.end(),
            [](const auto& a, const auto& b) { return comes_before(a.front(), b.front()); });
  Boxes out;
  for (std::vector<std::string>& nodes : ordered) {
    WaitBox box{.ranks = {}, .nodes = std::move(nodes), .label = {}, .culprit = false};
    std::vector<model::Rank> ranks;
    for (const std::string& node : box.nodes) {
      out.of_node[node] = out.boxes.size();
      if (const auto rank = rank_of(node)) {
        ranks.push_back(*rank);
      }
    }
    box.ranks = model::RankSet(std::move(ranks));
    box.culprit = !box.ranks.common(culprits).empty();
    box.label = label_of(box, labels);
    out.boxes.push_back(std::move(box));
  }
  return out;
}

using Reasons = std::map<std::pair<std::size_t, std::size_t>, std::set<std::string>>;

std::set<std::size_t> boxes_of(const model::RankSet& ranks, const Boxes& drawn) {
  std::set<std::size_t> out;
  for (const model::Rank rank : ranks) {
    out.insert(drawn.of_node.at(fmt::format("rank:{}", rank)));
  }
  return out;
}

Reasons reasons(const Relations& all, const Boxes& drawn) {
  Reasons out;
  for (const CollectiveWait& wait : all.collectives) {
    for (const std::size_t from : boxes_of(wait.waiting, drawn)) {
      for (const std::size_t to : boxes_of(wait.missing, drawn)) {
        out[{from, to}].insert(wait.why);
      }
    }
  }
  for (const Edge& edge : all.edges) {
    out[{drawn.of_node.at(edge.from), drawn.of_node.at(edge.to)}].insert(edge.why);
  }
  return out;
}

/// Boxes reachable from `start` along edges.
std::vector<bool> reached(std::size_t start, const std::vector<std::vector<std::size_t>>& next) {
  std::vector<bool> seen(next.size());
  std::vector<std::size_t> open = {start};
  while (!open.empty()) {
    const std::size_t box = open.back();
    open.pop_back();
    for (const std::size_t to : next[box]) {
      if (!seen[to]) {
        seen[to] = true;
        open.push_back(to);
      }
    }
  }
  return seen;
}

// Cycles are searched only if the picture is small enough to be viewed.
constexpr std::size_t kMostBoxesForCircles = 512;

void mark_circles(WaitPicture& picture) {
  if (picture.boxes.size() > kMostBoxesForCircles) {
    return;
  }
  std::vector<std::vector<std::size_t>> next(picture.boxes.size());
  for (const WaitArrow& arrow : picture.arrows) {
    next[arrow.from].push_back(arrow.to);
  }
  std::vector<std::vector<bool>> reach;
  for (std::size_t box = 0; box < picture.boxes.size(); ++box) {
    reach.push_back(reached(box, next));
  }
  for (WaitArrow& arrow : picture.arrows) {
    arrow.cycle = reach[arrow.to][arrow.from] || arrow.to == arrow.from;
  }
}

}  // namespace

WaitPicture wait_picture(const diagnosis::Diagnosis& diagnosis) {
  const Labels labels(diagnosis.job);
  const Relations all = relations(diagnosis.examination.waits, labels);
  Boxes drawn =
      boxes(all, labels,
            diagnosis.findings.empty() ? model::RankSet() : diagnosis.findings.front().culprits);
  WaitPicture out;
  for (const auto& [ends, why] : reasons(all, drawn)) {
    out.arrows.push_back(
        {.from = ends.first, .to = ends.second, .why = {why.begin(), why.end()}, .cycle = false});
  }
  out.boxes = std::move(drawn.boxes);
  mark_circles(out);
  return out;
}

}  // namespace ddpdoctor::viewer

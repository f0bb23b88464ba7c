// SPDX-License-Identifier: Apache-2.0
#include "collector/diagnosis/explain_away.h"

#include <algorithm>
#include <set>
#include <string>
#include <tuple>

#include <fmt/format.h>

namespace ddpdoctor::diagnosis {
namespace {

using detectors::Confidence;
using detectors::Effect;
using model::Rank;
using model::RankSet;

bool is_subset(const RankSet& part, const RankSet& whole) {
  return part.minus(whole).empty();
}

/// Nodes of the wait-for graph that a finding accuses: its culprits, and the process it names.
std::set<std::string> accused_nodes(const detectors::Finding& finding) {
  std::set<std::string> nodes;
  for (const Rank rank : finding.culprits) {
    nodes.insert(fmt::format("rank:{}", rank));
  }
  if (const auto pid = finding.details.find("pid"); pid != finding.details.end()) {
    if (const auto* number = std::get_if<std::int64_t>(&pid->second)) {
      nodes.insert(fmt::format("pid:{}", *number));
    }
  }
  return nodes;
}

/// Every edge of the wait-for graph from this rank ends at one of `nodes`.
bool waiting_ends_at(const graph::WaitForGraph& waits, Rank rank,
                     const std::set<std::string>& nodes) {
  const auto ends = waits.ends_of_waiting(fmt::format("rank:{}", rank));
  return !ends.empty() && std::all_of(ends.begin(), ends.end(), [&nodes](const std::string& end) {
    return nodes.contains(end);
  });
}

/// Each of `ranks` is a culprit of the finding or waits because of one.
bool held_up(const RankSet& ranks, const detectors::Finding& by, const graph::WaitForGraph& waits) {
  const RankSet rest = ranks.minus(by.culprits).minus(by.waiting);
  if (rest.empty()) {
    return true;
  }
  const std::set<std::string> nodes = accused_nodes(by);
  return std::all_of(rest.begin(), rest.end(),
                     [&](Rank rank) { return waiting_ends_at(waits, rank, nodes); });
}

/// Leaks and silently wrong numbers occur independently of a hang; only a finding of the same sort
/// can explain them.
bool stands_alone(const Judged& one, const Judged& other) {
  const auto apart = [](Effect effect) {
    return effect == Effect::kLeak || effect == Effect::kWrongNumbers;
  };
  const Effect a = one.effect();
  const Effect b = other.effect();
  return a != b && (apart(a) || apart(b));
}

/// Both findings name the same line first, and neither knows a rank: both come from one traceback
/// in a log.
bool same_line(const detectors::Finding& one, const detectors::Finding& other) {
  if (!one.culprits.empty() || !other.culprits.empty() || one.locations.empty() ||
      other.locations.empty()) {
    return false;
  }
  const detectors::Location& a = one.locations.front();
  const detectors::Location& b = other.locations.front();
  return a.line > 0 && a.line == b.line && a.file == b.file;
}

/// A strict order: never true in both directions.
bool finer(const Judged& one, const Judged& other) {
  return std::pair(one.specificity(), one.finding.confidence) >
         std::pair(other.specificity(), other.finding.confidence);
}

/// A culprit that other ranks wait for and that waits for no one, or a member of a cycle: the end
/// of the edges.
bool waiting_ends_here(const detectors::Finding& finding, const std::set<std::string>& ends) {
  const auto nodes = accused_nodes(finding);
  return std::any_of(nodes.begin(), nodes.end(),
                     [&ends](const std::string& node) { return ends.contains(node); });
}

std::set<std::string> ends_of_all_waiting(const graph::WaitForGraph& waits) {
  std::set<std::string> ends;
  for (std::string& sink : waits.sinks()) {
    ends.insert(std::move(sink));
  }
  for (const auto& cycle : waits.cycles()) {
    ends.insert(cycle.begin(), cycle.end());
  }
  return ends;
}

}  // namespace

bool explains(const Judged& cause, const Judged& effect, const graph::Examination& examination) {
  if (!finer(cause, effect) || stands_alone(cause, effect) ||
      cause.finding.ahead != effect.finding.ahead) {
    return false;
  }
  const Confidence sure = cause.finding.confidence;
  if (effect.specificity() == detectors::kSaysNothing) {
    return true;
  }
  if (sure == Confidence::kPossible && effect.finding.confidence != Confidence::kPossible) {
    return false;
  }
  if (sure >= effect.finding.confidence && same_line(cause.finding, effect.finding)) {
    return true;
  }
  const RankSet& accused = effect.finding.culprits;
  if (accused.empty()) {
    return sure >= effect.finding.confidence &&
           held_up(effect.finding.waiting, cause.finding, examination.waits) &&
           !(cause.finding.culprits.empty() && cause.finding.waiting.empty());
  }
  if (is_subset(accused, cause.finding.culprits)) {
    return true;
  }
  // The cause has no culprit (for example, two groups with one name), so the waiting ranks are not
  // culprits either.
  if (cause.finding.culprits.empty() && sure >= effect.finding.confidence &&
      is_subset(accused, cause.finding.waiting)) {
    return true;
  }
  // The effect accuses a rank that only waits for another; the finding about the other must be at
  // least as certain.
  return sure >= effect.finding.confidence && !cause.finding.culprits.empty() &&
         held_up(accused, cause.finding, examination.waits);
}

/// The same finding at the same lines for ranks that are already reported: one cause, seen in
/// several groups.
bool told_already(const Judged& before, const Judged& candidate) {
  const detectors::Finding& a = before.finding;
  const detectors::Finding& b = candidate.finding;
  const auto lines = [](const detectors::Finding& finding) {
    std::set<std::pair<std::string, int>> out;
    for (const detectors::Location& one : finding.locations) {
      out.emplace(one.file, one.line);
    }
    return out;
  };
  return a.kind == b.kind && a.confidence >= b.confidence && !a.culprits.empty() &&
         !b.culprits.empty() && lines(a).size() > 1 && lines(a) == lines(b) &&
         is_subset(b.culprits.united(b.waiting), a.culprits.united(a.waiting));
}

std::vector<Judged> without_explained(std::vector<Judged> all,
                                      const graph::Examination& examination) {
  std::stable_sort(all.begin(), all.end(), finer);
  std::vector<Judged> kept;
  for (Judged& candidate : all) {
    const bool explained = std::any_of(kept.begin(), kept.end(), [&](const Judged& cause) {
      return explains(cause, candidate, examination) || told_already(cause, candidate);
    });
    if (!explained) {
      kept.push_back(std::move(candidate));
    }
  }
  return kept;
}

void put_in_order(std::vector<Judged>& all, const graph::Examination& examination) {
  const std::set<std::string> ends = ends_of_all_waiting(examination.waits);
  const auto key = [&ends](const Judged& one) {
    const detectors::Finding& finding = one.finding;
    const Rank first = finding.culprits.empty() ? model::kMaxWorldSize : finding.culprits.front();
    return std::tuple(finding.confidence == Confidence::kPossible, one.effect() == Effect::kLeak,
                      finding.confidence != Confidence::kCertain, !waiting_ends_here(finding, ends),
                      -one.specificity(), std::string_view(finding.kind), finding.locations.empty(),
                      first);
  };
  std::stable_sort(all.begin(), all.end(),
                   [&key](const Judged& a, const Judged& b) { return key(a) < key(b); });
}

}  // namespace ddpdoctor::diagnosis

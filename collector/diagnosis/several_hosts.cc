// SPDX-License-Identifier: Apache-2.0
#include "collector/diagnosis/several_hosts.h"

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "collector/graph/wait_for.h"
#include "collector/model/host_pids.h"

namespace ddpdoctor::diagnosis {
namespace {

using detectors::Finding;
using Hosts = std::map<model::Rank, std::string>;

constexpr std::size_t kMostNamed = 2;  // hosts named after the ranks of a sentence

/// The hosts of these ranks, each once; empty when the host of any rank is unknown.
std::set<std::string> hosts_of(const model::RankSet& ranks, const Hosts& hosts) {
  std::set<std::string> out;
  for (const model::Rank rank : ranks) {
    const auto found = hosts.find(rank);
    if (found == hosts.end()) {
      return {};
    }
    out.insert(found->second);
  }
  return out;
}

bool continues(std::string_view rest) {
  return !rest.empty() && ((rest.front() >= '0' && rest.front() <= '9') ||
                           (rest.size() > 1 && (rest.front() == '-' || rest.front() == ',') &&
                            rest[1] >= '0' && rest[1] <= '9'));
}

/// "rank 5 (node2) never joined …": inserts hosts after the first mention of the culprits.
void name_hosts(std::string& sentence, const model::RankSet& culprits, const Hosts& hosts) {
  const std::set<std::string> names = hosts_of(culprits, hosts);
  if (names.empty() || names.size() > kMostNamed) {
    return;
  }
  const std::string who = culprits.said();
  for (std::size_t at = sentence.find(who); at != std::string::npos;
       at = sentence.find(who, at + 1)) {
    const std::size_t end = at + who.size();
    const std::string_view rest = std::string_view(sentence).substr(end);
    const bool possessive = rest.starts_with("'");
    if (!continues(rest) && !possessive) {
      sentence.insert(end, fmt::format(" ({})", fmt::join(names, ", ")));
      return;
    }
  }
}

void tell(Finding& finding, const model::HostPids& pids, const Hosts& hosts) {
  finding.summary = pids.said(finding.summary);
  finding.fix = pids.said(finding.fix);
  for (detectors::Location& where : finding.locations) {
    where.note = pids.said(where.note);
  }
  for (detectors::Evidence& evidence : finding.evidence) {
    evidence.text = pids.said(evidence.text);
  }
  for (auto& [name, detail] : finding.details) {
    if (auto* number = std::get_if<std::int64_t>(&detail)) {
      *number = pids.local(*number);
    } else if (auto* text = std::get_if<std::string>(&detail)) {
      *text = pids.said(*text);
    } else if (auto* list = std::get_if<std::vector<std::string>>(&detail)) {
      for (std::string& one : *list) {
        one = pids.said(one);
      }
    }
  }
  name_hosts(finding.summary, finding.culprits, hosts);
  const std::set<std::string> names = hosts_of(finding.culprits, hosts);
  if (!names.empty()) {
    finding.details.try_emplace("hosts", std::vector<std::string>(names.begin(), names.end()));
  }
}

graph::WaitForGraph told(const graph::WaitForGraph& graph, const model::HostPids& pids) {
  graph::WaitForGraph out;
  for (const graph::Edge& edge : graph.edges()) {
    out.add({.from = pids.said(edge.from),
             .to = pids.said(edge.to),
             .kind = edge.kind,
             .why = pids.said(edge.why)});
  }
  for (graph::CollectiveWait wait : graph.collective_waits()) {
    wait.why = pids.said(wait.why);
    out.add(std::move(wait));
  }
  return out;
}

/// The details name a process without a rank by its pid; this adds the host of that pid.
void name_host_of_process(Finding& finding, const model::HostPids& pids) {
  const auto pid = finding.details.find("pid");
  const auto* number =
      pid == finding.details.end() ? nullptr : std::get_if<std::int64_t>(&pid->second);
  if (number != nullptr && !pids.host_of(*number).empty()) {
    finding.details.try_emplace("host", pids.host_of(*number));
  }
}

}  // namespace

Diagnosis diagnose_hosts(model::JobModel& job) {
  const model::HostPids pids = model::HostPids::number(job);
  Diagnosis found = diagnose(job);
  if (pids.empty()) {
    return found;
  }
  const Hosts hosts = model::hosts_of_ranks(job);
  for (Finding& finding : found.findings) {
    name_host_of_process(finding, pids);
    tell(finding, pids, hosts);
  }
  found.examination.waits = told(found.examination.waits, pids);
  pids.restore(job);
  return found;
}

}  // namespace ddpdoctor::diagnosis

// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/unreachable_peers.h"

#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"
#include "collector/detectors/evidence/gloo_address.h"
#include "collector/detectors/evidence/known_exceptions.h"
#include "collector/detectors/evidence/mpi_network.h"
#include "collector/detectors/evidence/nccl_bootstrap.h"
#include "collector/detectors/evidence/nccl_words.h"
#include "collector/detectors/evidence/wording.h"

namespace ddpdoctor::detectors {
namespace {

constexpr std::size_t kLongestAddressLine = 240;
constexpr std::size_t kMostNames = 4;
constexpr std::size_t kLongestInterface = 64;
constexpr std::string_view kChooseInterface =
    "Set GLOO_SOCKET_IFNAME on every node to its interface of `ip -brief address` that reaches the "
    "other nodes.";

/// The interface that NCCL was configured to use, from its INFO lines: "eth2".
std::set<std::string> interfaces(const model::JobModel& job, Finding& finding) {
  constexpr std::string_view kSet = "NCCL_SOCKET_IFNAME set by environment to ";
  std::set<std::string> out;
  for (const model::Log& log : job.logs) {
    for (std::size_t at = log.text.find(kSet); at != std::string::npos && out.size() < kMostNames;
         at = log.text.find(kSet, at + 1)) {
      const std::string_view rest = std::string_view(log.text).substr(at + kSet.size());
      const std::string_view name = rest.substr(0, rest.find_first_of(" \r\n"));
      if (name.empty() || name.size() > kLongestInterface ||
          !out.insert(base::printable(name)).second) {
        continue;
      }
      const std::size_t begin = log.text.rfind('\n', at) + 1;
      const std::string_view line = std::string_view(log.text).substr(begin);
      finding.evidence.push_back(
          {.rank = log.rank,
           .text = "log: " + base::elide(base::printable(line.substr(0, line.find('\n'))),
                                         kLongestAddressLine)});
    }
  }
  return out;
}

/// No message of a failed connection: the log may end while NCCL still connects.
Finding of_address(std::string_view kind) {
  Finding finding;
  finding.kind = kind;
  finding.confidence = Confidence::kPossible;
  return finding;
}

/// The address is the cause of the failed connections, or the only thing known of the job.
void tell_address(const BadAddress& bad, Finding& finding) {
  finding.summary += finding.summary.empty() ? "" : "; ";
  finding.summary += bad.words;
  finding.fix = bad.fix;
  finding.evidence.insert(finding.evidence.end(), bad.evidence.begin(), bad.evidence.end());
}

/// gloo, too, connects every rank to every other.
Finding of_gloo(const GlooLoopback& gloo, std::string_view kind) {
  Finding finding;
  finding.kind = kind;
  finding.confidence = gloo.failed ? Confidence::kLikely : Confidence::kPossible;
  finding.waiting = gloo.ranks;
  finding.evidence = gloo.evidence;
  finding.summary = fmt::format(
      "gloo uses the loopback address{}{}, which other hosts cannot reach; the job has {}",
      gloo.ranks.empty() ? "" : " on ", gloo.ranks.empty() ? "" : said(gloo.ranks), gloo.hosts);
  finding.fix = kChooseInterface;
  return finding;
}

/// No address is known, and nothing else failed.
Finding of_mesh(const GlooMesh& mesh, std::string_view kind) {
  Finding finding;
  finding.kind = kind;
  finding.confidence = Confidence::kPossible;
  finding.waiting = mesh.ranks;
  finding.evidence = mesh.evidence;
  finding.summary =
      fmt::format("gloo could not connect {} to the other ranks of a new group", said(mesh.ranks));
  finding.fix = kChooseInterface;
  finding.fix += " If the log of another rank shows that it ended before, that is the cause.";
  return finding;
}

/// What the libraries wrote of it.
Findings told(const graph::Examination& examination, std::string_view kind) {
  std::vector<ToldFinding> all = told_by_text(examination, kind);
  std::erase_if(all, [](const ToldFinding& one) { return one.says != Message::kNoPeer; });
  return summarized(std::move(all));
}

}  // namespace

Findings unreachable_peers(const graph::Examination& examination, std::string_view kind) {
  Findings findings = told(examination, kind);
  const auto bad = bad_address(examination.job);
  if (bad && findings.empty()) {
    findings.push_back(of_address(kind));
  }
  for (Finding& finding : findings) {
    finding.waiting = finding.waiting.united(finding.culprits);
    finding.culprits = {};
    const auto names = interfaces(examination.job, finding);
    if (!names.empty()) {
      finding.summary += fmt::format("; NCCL_SOCKET_IFNAME is {}", fmt::join(names, " or "));
    }
    if (bad) {
      tell_address(*bad, finding);
    }
  }
  for (Finding& finding : unreachable_in_mpi(examination, kind)) {
    findings.push_back(std::move(finding));
  }
  if (auto bootstrap = findings.empty() ? stuck_in_bootstrap(examination, kind) : std::nullopt) {
    findings.push_back(std::move(*bootstrap));
  }
  if (const auto gloo = gloo_loopback(examination.job)) {
    findings.push_back(of_gloo(*gloo, kind));
  }
  if (const auto mesh = findings.empty() ? gloo_mesh_failed(examination.job) : std::nullopt) {
    findings.push_back(of_mesh(*mesh, kind));
  }
  for (Finding& finding : findings) {
    finding.crashed = true;  // connections to a rank that has exited fail in the same way
  }
  return findings;
}

}  // namespace ddpdoctor::detectors

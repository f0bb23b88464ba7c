// SPDX-License-Identifier: Apache-2.0
// nccl-unreachable: NCCL found no network interface, or NCCL or gloo could not connect to another
// rank. The reporting rank is not the culprit: the interface or the address is.
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"
#include "collector/detectors/detector.h"
#include "collector/detectors/evidence/gloo_address.h"
#include "collector/detectors/evidence/known_exceptions.h"
#include "collector/detectors/evidence/mpi_network.h"
#include "collector/detectors/evidence/nccl_bootstrap.h"
#include "collector/detectors/evidence/nccl_words.h"
#include "collector/detectors/evidence/wording.h"

namespace ddpdoctor::detectors::nccl_unreachable {
namespace {

constexpr std::string_view kKind = "nccl-unreachable";
constexpr std::size_t kLongestLine = 240;
constexpr std::size_t kMostNames = 4;
constexpr std::size_t kLongestName = 64;
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
      if (name.empty() || name.size() > kLongestName || !out.insert(base::printable(name)).second) {
        continue;
      }
      const std::size_t begin = log.text.rfind('\n', at) + 1;
      const std::string_view line = std::string_view(log.text).substr(begin);
      finding.evidence.push_back(
          {.rank = log.rank,
           .text = "log: " +
                   base::elide(base::printable(line.substr(0, line.find('\n'))), kLongestLine)});
    }
  }
  return out;
}

/// No message of a failed connection: the log may end while NCCL still connects.
Finding of_address() {
  Finding finding;
  finding.kind = kKind;
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
Finding of_gloo(const GlooLoopback& gloo) {
  Finding finding;
  finding.kind = kKind;
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
Finding of_mesh(const GlooMesh& mesh) {
  Finding finding;
  finding.kind = kKind;
  finding.confidence = Confidence::kPossible;
  finding.waiting = mesh.ranks;
  finding.evidence = mesh.evidence;
  finding.summary =
      fmt::format("gloo could not connect {} to the other ranks of a new group", said(mesh.ranks));
  finding.fix = kChooseInterface;
  finding.fix += " If the log of another rank shows that it ended before, that is the cause.";
  return finding;
}

Findings detect(const graph::Examination& examination) {
  Findings findings = findings_from_text(examination, kKind);
  const auto bad = bad_address(examination.job);
  if (bad && findings.empty()) {
    findings.push_back(of_address());
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
  for (Finding& finding : unreachable_in_mpi(examination, kKind)) {
    findings.push_back(std::move(finding));
  }
  if (auto bootstrap = findings.empty() ? stuck_in_bootstrap(examination, kKind) : std::nullopt) {
    findings.push_back(std::move(*bootstrap));
  }
  if (const auto gloo = gloo_loopback(examination.job)) {
    findings.push_back(of_gloo(*gloo));
  }
  if (const auto mesh = findings.empty() ? gloo_mesh_failed(examination.job) : std::nullopt) {
    findings.push_back(of_mesh(*mesh));
  }
  return findings;
}

}  // namespace

extern const Detector detector;
const Detector detector{
    .kind = kKind,
    .title = "NCCL, gloo or MPI finds no network interface or cannot connect",
    .explanation =
        R"(What you see: the first collective, or ncclCommInitRank, fails or waits; the log has "no socket interface found", "with family 59936 is
neither AF_INET(2) nor …", "Connect to … failed : No route to host", "exceeded retries". Or init_process_group or new_group fails with
"Gloo connectFullMesh failed with … remote=[127.0.0.1]". Or Open MPI prints "connect() to 172.17.0.1 failed".

Why: NCCL_SOCKET_IFNAME names an interface that some node does not have, or NCCL chose one that other nodes cannot reach (docker, a
bridge, a link-local address), or a firewall drops NCCL's ports. Connections to a rank that has exited fail in the same way. gloo uses
the address to which the host's own name resolves; if that is 127.0.0.1 or 127.0.1.1, other hosts cannot connect.

How ddpdoctor knows: from the messages of NCCL's socket and bootstrap code, and the interfaces that its INFO lines name: the loopback,
or one address on two hosts, reaches no other host. gloo's messages count only if the job has several hosts. In native stacks, some
ranks are in connect() and others in accept() of NCCL's bootstrap (possible). Of MPI, an address of a
bridge (docker0) or a missing route is likely; an ended process refuses connections as well.

Fix: name an interface that every node has and that reaches the other nodes.
    $ ip -brief address
    $ NCCL_SOCKET_IFNAME=eth0 GLOO_SOCKET_IFNAME=eth0 NCCL_DEBUG=INFO torchrun ...)",
    .detect = detect,
    .specificity = kPlainFact,
    .effect = Effect::kCrash,
};

}  // namespace ddpdoctor::detectors::nccl_unreachable

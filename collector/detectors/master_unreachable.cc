// SPDX-License-Identifier: Apache-2.0
// master-unreachable: ranks cannot reach the rendezvous: no process listens on
// MASTER_ADDR:MASTER_PORT, or one outside the job does.
#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/detectors/detector.h"
#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/known_exceptions.h"
#include "collector/detectors/evidence/late_to_rendezvous.h"
#include "collector/detectors/evidence/port_holder.h"
#include "collector/detectors/evidence/rendezvous_failures.h"
#include "collector/detectors/evidence/server_connects.h"
#include "collector/detectors/evidence/ssh_failures.h"
#include "collector/detectors/evidence/store_address.h"
#include "collector/detectors/evidence/suspects.h"
#include "collector/detectors/evidence/told_addresses.h"
#include "collector/detectors/evidence/tracebacks.h"
#include "collector/detectors/evidence/unreachable_peers.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors::master_unreachable {
namespace {

constexpr std::string_view kKind = "master-unreachable";

model::RankSet ranks_at_rendezvous(const graph::Examination& examination) {
  return ranks_where(examination, [](const graph::Standing& standing) {
    return standing.activity == graph::Activity::kRendezvous;
  });
}

/// Why the rendezvous is unreachable; empty if it is reachable or unknown.
std::string obstacle(const model::JobModel& job, const model::Fact& listen) {
  if (!listen.flag("local").value_or(false)) {
    return {};
  }
  const std::string address = fmt::format("{}:{:.0f}", listen.text("address").value_or("?"),
                                          listen.number("port").value_or(0));
  if (listen.flag("listening") == false) {
    return fmt::format("no process listens on {}", address);
  }
  if (const auto holder = port_holder(job, listen)) {
    return fmt::format("{} is in use by process {} ({}), which is not part of this job", address,
                       holder->pid, holder->command);
  }
  return {};
}

/// Attempted connections to the rendezvous without an answer, and their ranks.
struct Unanswered {
  std::string address;
  model::RankSet ranks;
};

std::optional<Unanswered> unanswered(const model::JobModel& job) {
  Unanswered out;
  for (const model::Fact* connect : model::facts(job, "connect")) {
    if (connect->flag("rendezvous") != true) {
      continue;
    }
    out.address = fmt::format("{}:{:.0f}", connect->text("address").value_or("?"),
                              connect->number("port").value_or(0));
    if (connect->rank) {
      out.ranks.insert(*connect->rank);
    }
  }
  return out.address.empty() ? std::nullopt : std::optional(std::move(out));
}

/// The ranks at the rendezvous that were given this port.
model::RankSet told_port(const graph::Examination& examination, const model::RankSet& waiting,
                         const model::Fact& listen) {
  const std::string port = fmt::format("{:.0f}", listen.number("port").value_or(-1));
  model::RankSet out;
  for (const model::Rank rank : waiting) {
    const model::Process* process = model::rank_process(examination.job, rank);
    if (process == nullptr) {
      continue;
    }
    const auto told = process->environment.find("MASTER_PORT");
    if (told != process->environment.end() && told->second == port) {
      out.insert(rank);
    }
  }
  return out;
}

/// Some ranks were given an address of their own: theirs must be corrected.
Finding astray(const graph::Examination& examination, const model::RankSet& ranks,
               const std::string& reason, Confidence still) {
  std::vector<Suspect> suspects;
  for (const model::Rank rank : ranks) {
    const graph::Standing* standing = examination.standing(rank);
    Suspect suspect{.rank = rank};
    if (standing != nullptr && standing->process != nullptr) {
      suspect = suspect_in(examination, *standing->process, model::main_thread(*standing->process));
      suspect.rank = rank;
    }
    // No process serves the port, and the other ranks were given a different one: two facts.
    suspect.confidence = still == Confidence::kLikely ? Confidence::kCertain : still;
    suspect.note = fmt::format("rank {} tries to connect here", rank);
    suspect.evidence = fmt::format("{}; the other ranks have a different MASTER_PORT", reason);
    suspects.push_back(std::move(suspect));
  }
  return accuse(examination, kKind, suspects);
}

/// A foreign process has the port and ranks wait there: two facts. The rank that found the port in
/// use has exited.
void name_holder(const graph::Examination& examination, const PortHolder& holder, Confidence still,
                 Finding& finding) {
  finding.confidence = still == Confidence::kLikely ? Confidence::kCertain : still;
  finding.details["pid"] = static_cast<std::int64_t>(holder.pid);
  for (const Sighting& sighting : sightings(examination.job, kKind)) {
    if (sighting.rank && !finding.waiting.contains(*sighting.rank)) {
      finding.culprits.insert(*sighting.rank);
      finding.evidence.push_back({.rank = sighting.rank, .text = "log: " + sighting.line});
    }
  }
}

/// torch's constructor of the store raised: only a log shows it.
std::vector<ToldFinding> failed_at_store(const graph::Examination& examination) {
  constexpr std::size_t kLongestQuote = 240;
  std::vector<Suspect> suspects;
  for (const Traceback& one : tracebacks(examination.job)) {
    if (!one.ignored && failed_to_reach_store(one)) {
      Suspect suspect{.rank = one.rank, .place = one.place};
      suspect.confidence =
          outlived(examination, one.rank) ? Confidence::kPossible : Confidence::kLikely;
      suspect.note = "this line raised";
      suspect.evidence = "log: " + base::elide(base::printable(one.exception), kLongestQuote);
      suspects.push_back(std::move(suspect));
    }
  }
  std::vector<ToldFinding> out;
  for (const auto& there : by_place(std::move(suspects))) {
    ToldFinding told{.finding = accuse(examination, kKind, there), .says = Message::kCannotReach};
    told.messages = {told.says};
    told.who = told.finding.culprits.empty() ? "a process" : who(there);
    told.did = "cannot reach the rendezvous";
    told.place = placed(there.front().place);
    told.finding.fix =
        "Start rank 0 first, and check MASTER_ADDR and MASTER_PORT on every node: `nc -vz "
        "$MASTER_ADDR $MASTER_PORT` must connect.";
    out.push_back(std::move(told));
  }
  return out;
}

/// The exception that says so may be the cause of the quoted one.
std::optional<std::string> line_of_unknown_name(const model::JobModel& job) {
  constexpr std::size_t kLongestNameLine = 240;
  for (const model::Log& log : job.logs) {
    if (const auto warning = warning_before_giving_up(log.text)) {
      return base::elide(base::printable(base::trim(*warning)), kLongestNameLine);
    }
    for (const std::string_view line : base::split(log.text, '\n')) {
      if (says_name_unknown(line.substr(0, 4096)) && line.find("Error: ") != line.npos) {
        return base::elide(base::printable(base::trim(line)), kLongestNameLine);
      }
    }
  }
  return std::nullopt;
}

/// Other processes cannot connect because of a port in use.
void keep_port_in_use(std::vector<ToldFinding>& all) {
  const bool sure = std::any_of(all.begin(), all.end(), [](const ToldFinding& told) {
    return told.says == Message::kPortInUse && told.finding.confidence != Confidence::kPossible;
  });
  if (sure) {
    std::erase_if(all, [](const ToldFinding& told) { return told.says != Message::kPortInUse; });
  }
}

/// The rendezvous was complete without that port: NCCL starts after it. A launcher that was started
/// twice on one node finds the port in use and joins as a client.
void doubt_what_nccl_passed(const model::JobModel& job, std::vector<ToldFinding>& all) {
  const bool raised = std::any_of(job.logs.begin(), job.logs.end(), [](const model::Log& log) {
    return log.text.find("Error: The server socket has failed to listen") != std::string::npos ||
           log.text.find("Error: Address already in use") != std::string::npos;
  });
  const bool passed = std::any_of(job.logs.begin(), job.logs.end(), [](const model::Log& log) {
    const std::size_t last = log.text.rfind("ddress already in use");
    return last != std::string::npos && log.text.find(" NCCL ", last) != std::string::npos;
  });
  for (ToldFinding& told : all) {
    if (passed && !raised && told.says == Message::kPortInUse) {
      told.finding.confidence = Confidence::kPossible;
    }
  }
}

/// Neither a port nor a firewall is at fault.
void tell_unknown_name(const StoreAddress& store, ToldFinding& told) {
  told.did = "cannot resolve the host name of the rendezvous";
  told.rest += store.text.empty() ? "" : ": " + store.text;
  told.finding.fix =
      store.brackets ? "Pass the address in MASTER_ADDR without its brackets: they belong to URLs, "
                       "and torch looks them up as a part of the name."
                     : "Start the host or pod that MASTER_ADDR names first, and check that `getent "
                       "hosts $MASTER_ADDR` finds it on this node.";
}

/// What the logs say. A rank that was given a different address than the others is of
/// environment-differs.
Findings from_logs(const graph::Examination& examination) {
  if (addresses_differ(examination.job)) {
    return {};
  }
  std::vector<ToldFinding> all = told_by_text(examination, kKind);
  std::erase_if(all, [](const ToldFinding& one) { return one.says == Message::kNoPeer; });
  all = all.empty() ? failed_at_store(examination) : std::move(all);
  if (all.empty()) {
    return {};
  }
  keep_port_in_use(all);
  doubt_what_nccl_passed(examination.job, all);
  const auto cause = line_of_unknown_name(examination.job);
  const StoreAddress store = unreachable_store(examination.job);
  for (ToldFinding& told : all) {
    Finding& finding = told.finding;
    bool unknown = std::any_of(finding.evidence.begin(), finding.evidence.end(),
                               [](const Evidence& one) { return says_name_unknown(one.text); });
    if (cause && !unknown) {
      finding.evidence.push_back({.rank = {}, .text = "log: " + *cause});
      unknown = true;
    }
    // torch's clients warn of a name and try again until their timeout: the host may be starting.
    const bool only_warns = told.messages == std::set{Message::kNoAddress};
    if (!cause && !store.brackets && examination.standings.empty() && only_warns) {
      finding.confidence = Confidence::kPossible;
    }
    const bool unreached = told.says == Message::kNoAddress || told.says == Message::kCannotReach;
    if (unreached && unknown) {
      tell_unknown_name(store, told);
    } else if (unreached) {
      tell_store(store, told);
    } else if (told.says == Message::kNoDaemons) {
      tell_why_ssh_failed(examination.job, finding);
    }
  }
  return summarized(std::move(all));
}

/// Ranks that wait at the rendezvous, or failed to reach it.
Findings at_rendezvous(const graph::Examination& examination) {
  const model::RankSet waiting = ranks_at_rendezvous(examination);
  const auto still = stuck(examination);
  if (waiting.empty() || !still) {
    return from_logs(examination);
  }
  const bool early = server_is_to_come(examination);
  Findings findings;
  for (const model::Fact* listen : model::facts(examination.job, "listen")) {
    const std::string reason = obstacle(examination.job, *listen);
    if (reason.empty() || (early && listen->flag("listening") == false)) {
      continue;
    }
    const model::RankSet told = told_port(examination, waiting, *listen);
    const bool some = !told.empty() && told.size() < waiting.size();
    Finding finding;
    if (some) {
      finding = astray(examination, told, reason, *still);
    } else {
      finding.kind = kKind;
      finding.confidence = *still;
      add_waiting(examination, finding);
      finding.evidence.push_back({.rank = std::nullopt, .text = reason});
    }
    const auto holder = port_holder(examination.job, *listen);
    if (holder && holder->foreign && !some) {
      name_holder(examination, *holder, *still, finding);
    } else if (!some) {  // rank 0 may still be started
      finding.confidence = unless_somebody_acts(examination, finding.confidence);
    }
    finding.summary =
        fmt::format("{} cannot reach the rendezvous: {}", said(some ? told : waiting), reason);
    finding.fix =
        holder ? fmt::format(
                     "Choose a free MASTER_PORT (--master-port, --rdzv-endpoint) for all "
                     "ranks, or end process {}.",
                     holder->pid)
               : "Correct MASTER_ADDR and MASTER_PORT (--rdzv-endpoint) on every node, start rank "
                 "0 first, or choose a free port.";
    findings.push_back(std::move(finding));
  }
  if (early) {
    return findings;
  }
  if (const auto silent = unanswered(examination.job); silent && findings.empty()) {
    const bool some = !silent->ranks.empty() && silent->ranks != waiting;
    const std::string reason = fmt::format("{} does not answer{}", silent->address,
                                           some ? " " + said(silent->ranks) : std::string());
    Finding finding;
    finding.kind = kKind;
    finding.confidence = *still;
    add_waiting(examination, finding);
    finding.evidence.push_back({.rank = std::nullopt, .text = reason});
    finding.summary = fmt::format("{} cannot reach the rendezvous: {}", said(waiting), reason);
    finding.fix = fmt::format(
        "Check that MASTER_ADDR is the machine of rank 0, and that no firewall blocks {}.",
        silent->address);
    findings.push_back(std::move(finding));
  }
  if (findings.empty()) {
    findings = from_logs(examination);
  }
  if (auto finding = findings.empty() ? server_connects(examination, kKind, waiting, *still)
                                      : std::optional<Finding>()) {
    findings.push_back(std::move(*finding));
  }
  return findings;
}

Findings detect(const graph::Examination& examination) {
  Findings findings = at_rendezvous(examination);
  for (Finding& finding : unreachable_peers(examination, kKind)) {
    findings.push_back(std::move(finding));
  }
  return findings;
}

}  // namespace

extern const Detector detector;
const Detector detector{
    .kind = kKind,
    .title = "The ranks cannot connect to the rendezvous, or to each other",
    .explanation =
        R"(What you see: ranks are in init_process_group; "client socket has failed to connect", "Address already in use". Or the first
collective fails: "no socket interface found", "Connect to … failed : No route to host", "is neither AF_INET(2) nor …", "Gloo
connectFullMesh failed with … remote=[127.0.0.1]"; Open MPI: "connect() to 172.17.0.1 failed".

Why: MASTER_ADDR names the wrong machine, MASTER_PORT differs between nodes or belongs to another program, or the rank that
listens (0) was not started. Behind the rendezvous, NCCL_SOCKET_IFNAME names an interface that some node does not have, NCCL chose one
that other nodes cannot reach (docker, a bridge, a link-local address), or a firewall drops its ports. gloo uses the address of the
host's own name; if that is 127.0.0.1, other hosts cannot connect. Connections to a rank that has exited fail in the same way.

How ddpdoctor knows: it checks which process listens on the address that the ranks were given, and reads the messages and the interfaces
that NCCL's INFO lines name. In a log, an exception of torch's own code that connects to the store counts, too. In native stacks, some
ranks are in connect() and others in accept() of NCCL's bootstrap (possible). gloo's messages count only if the job has several hosts.

Fix: an address and an interface that all nodes reach.
    $ ip -brief address
    $ NCCL_SOCKET_IFNAME=eth0 GLOO_SOCKET_IFNAME=eth0 torchrun --rdzv-endpoint node0:29501 ...)",
    .detect = detect,
    .specificity = kPlaceOfCause,
};

}  // namespace ddpdoctor::detectors::master_unreachable

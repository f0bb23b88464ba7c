// SPDX-License-Identifier: Apache-2.0
// environment-differs: a variable or library version that must be equal on every rank differs:
// ranks wait at different addresses, use different world sizes, or speak different protocols of
// NCCL.
#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "collector/detectors/detector.h"
#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/group_numbers.h"
#include "collector/detectors/evidence/known_exceptions.h"
#include "collector/detectors/evidence/suspects.h"
#include "collector/detectors/evidence/told_addresses.h"
#include "collector/detectors/evidence/told_rendezvous.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors::environment_differs {
namespace {

constexpr std::string_view kKind = "environment-differs";

/// A variable, and whether a difference alone prevents the rendezvous.
struct MustAgree {
  std::string_view name;
  bool decides;
};

/// MASTER_ADDR may be written in several ways (a name, an address), so a difference proves nothing.
constexpr std::array kVariables = {MustAgree{"WORLD_SIZE", true},
                                   MustAgree{"MASTER_PORT", true},
                                   MustAgree{"MASTER_ADDR", false},
                                   MustAgree{"NCCL_PROTO", false},
                                   MustAgree{"NCCL_ALGO", false},
                                   MustAgree{"NCCL_P2P_DISABLE", false},
                                   MustAgree{"NCCL_SHM_DISABLE", false},
                                   MustAgree{"NCCL_NET", false},
                                   MustAgree{"NCCL_NVLS_ENABLE", false},
                                   MustAgree{"TORCH_NCCL_BLOCKING_WAIT", false},
                                   MustAgree{"TORCH_DISTRIBUTED_DEBUG", false}};

constexpr std::array<std::string_view, 2> kLibraries = {"torch", "nccl"};

/// The processes of the ranks, and which of them started others: looked up once for all variables.
class RankProcesses {
 public:
  explicit RankProcesses(const model::JobModel& job) : job_(job) {
    const model::Observation* now = model::latest(job);
    for (std::size_t i = 0; now != nullptr && i < now->processes.size(); ++i) {
      const model::Process& process = now->processes[i];
      if (process.role == model::Role::kRank && process.rank) {
        processes_.try_emplace(*process.rank, &process);
        parents_.emplace(process.host, process.ppid);
        some_tell_rank_ = some_tell_rank_ || process.environment.contains("RANK");
      }
    }
  }

  /// By rank. A rank whose environment was unreadable is left out: unknown, not different.
  [[nodiscard]] std::map<model::Rank, std::string> values_of(const std::string& variable) const {
    std::map<model::Rank, std::string> values;
    for (const auto& [rank, process] : processes_) {
      const auto found = process->environment.find(variable);
      const bool unset = found == process->environment.end();
      // Lightning's first rank passes what it sets itself after its start to the others.
      // Of a process that set its variables itself and now ends, only the initial ones are left.
      const bool initial = some_tell_rank_ && !process->environment.contains("RANK");
      if (process->environment.empty() || (unset && (initial || started_another(*process)))) {
        continue;
      }
      values.emplace(rank, unset ? "unset" : found->second);
    }
    return values;
  }

  [[nodiscard]] std::map<model::Rank, std::string> versions_of(std::string_view library) const {
    std::map<model::Rank, std::string> versions;
    std::map<std::string, std::string> of_host;  // all ranks of a host have the same version
    for (const model::Fact* fact : model::facts(job_, "library-version")) {
      const auto version = fact->text("version");
      if (!version || version->empty() || fact->text("library") != library) {
        continue;
      }
      if (fact->rank) {
        versions[*fact->rank] = *version;
      } else if (const auto host = fact->text("host")) {
        of_host[*host] = *version;
      }
    }
    for (const auto& [rank, process] : processes_) {
      if (const auto found = of_host.find(process->host); found != of_host.end()) {
        versions.emplace(rank, found->second);
      }
    }
    return versions;
  }

 private:
  [[nodiscard]] bool started_another(const model::Process& process) const {
    return parents_.contains({process.host, process.pid});
  }

  const model::JobModel& job_;
  std::map<model::Rank, const model::Process*> processes_;
  std::set<std::pair<std::string, pid_t>> parents_;  // host and pid of each rank's parent
  bool some_tell_rank_ = false;                      // RANK is in an environment
};

enum class Thing { kVariable, kLibrary };

/// "2.21.5 on rank 2".
std::string value_on(const Camp& camp) {
  return fmt::format("{} on {}", camp.key, said(camp.ranks));
}

/// "4 on rank 2, but 2 on ranks 0 and 1": who differs from most ranks comes first. Of many values,
/// the first ones: "… and 4 more values".
std::string values_of(const std::vector<Camp>& sides, const model::RankSet& culprits) {
  constexpr std::size_t kMostValues = 3;
  std::string odd;
  std::string rest;
  std::size_t shown = 0;
  std::size_t more = 0;
  for (const Camp& camp : sides) {
    const bool of_rest = camp.ranks.common(culprits).empty();
    if (!of_rest && ++shown > kMostValues) {
      ++more;
      continue;
    }
    std::string& text = of_rest ? rest : odd;
    text += (text.empty() ? "" : "; ") + value_on(camp);
  }
  odd += more == 0 ? std::string() : fmt::format(" and {} more values", more);
  return odd.empty() || rest.empty() ? odd + rest : fmt::format("{}, but {}", odd, rest);
}

bool is_address(std::string_view name) {
  return name.starts_with("MASTER_") || name.starts_with("--") || name == "init_method";
}

std::string fix_of(Thing thing, std::string_view name) {
  if (name.starts_with("--")) {
    return fmt::format("Pass the same {} to the launcher on every node.", name);
  }
  const std::string_view verb = thing == Thing::kLibrary ? "Install"
                                : name == "init_method"  ? "Pass"
                                                         : "Set";
  return fmt::format("{} the same {} on every rank.", verb, name);
}

std::optional<Finding> disagreement(const graph::Examination& examination, Thing thing,
                                    std::string_view name,
                                    const std::map<model::Rank, std::string>& values,
                                    Confidence sure) {
  const auto sides = camps(values);
  if (sides.size() < 2) {
    return std::nullopt;
  }
  Finding finding;
  finding.kind = kKind;
  finding.culprits = minority(sides);
  if (finding.culprits.empty() && thing != Thing::kLibrary && is_address(name)) {
    // Rank 0 is the master: ranks with another value cannot find it.
    for (const Camp& camp : sides) {
      if (!camp.ranks.contains(0)) {
        finding.culprits = finding.culprits.united(camp.ranks);
      }
    }
  }
  finding.confidence = sure;
  add_where_accused_stand(examination, finding);
  add_waiting(examination, finding);
  for (const Camp& camp : sides) {
    finding.evidence.push_back(
        {.rank = camp.ranks.front(),
         .text = fmt::format("{}: {} = {}", said(camp.ranks), name, camp.key),
         .shown = Shown{.file = {}, .line = 0, .words = value_on(camp)}});
  }
  finding.summary = fmt::format("{} is {}", name, values_of(sides, finding.culprits));
  finding.fix = fix_of(thing, name);
  finding.details["variable"] = std::string(name);
  return finding;
}

/// All ranks are in one call over a GPU backend without progress: a difference in settings has no
/// competing difference in control flow.
bool all_in_one_gpu_call(const graph::Examination& examination) {
  if (!examination.still() || examination.standings.size() < 2) {
    return false;
  }
  const graph::Standing& first = examination.standings.front();
  const bool together = std::all_of(examination.standings.begin(), examination.standings.end(),
                                    [&first](const graph::Standing& standing) {
                                      return standing.activity == graph::Activity::kCollective &&
                                             standing.call && first.call &&
                                             standing.call->operation == first.call->operation &&
                                             standing.user == first.user;
                                    });
  const auto& groups = examination.groups;
  return together &&
         std::any_of(groups.begin(), groups.end(),
                     [](const graph::GroupView& view) {
                       return view.group.backend.find("nccl") != std::string::npos;
                     }) &&
         std::all_of(groups.begin(), groups.end(),
                     [](const graph::GroupView& view) { return view.disagreements.empty(); });
}

/// Some ranks used another world size: NCCL creates its communicator only at the first call, in
/// which all of them wait.
bool default_group_is_two(const graph::Examination& examination) {
  const auto shared = shared_name(examination);
  return shared && is_default_group(examination.job, *shared);
}

/// "29500 (node0.log), 29501 (node1.log)".
std::string places_of(const AddressCamp& camp) {
  std::string out;
  for (const std::string& other : camp.others) {
    out += (out.empty() ? "" : ", ") + other;
  }
  return out;
}

/// Nodes or logs show different values, and no line names a rank.
Finding nameless(const AddressDispute& dispute, Confidence sure) {
  constexpr std::size_t kMostNamed = 4;
  Finding finding;
  finding.kind = kKind;
  finding.confidence = sure;
  std::string list;
  for (const AddressCamp& camp : dispute.camps) {
    finding.evidence.push_back({.rank = std::nullopt, .text = "log: " + camp.line});
    if (finding.evidence.size() <= kMostNamed) {
      const std::string places = places_of(camp);
      list += fmt::format("{}{}{}{}",
                          list.empty()     ? ""
                          : places.empty() ? ", "
                                           : ", but ",
                          camp.value, places.empty() ? "" : " on ", places);
    }
  }
  const bool placed = !dispute.camps.front().others.empty();
  finding.summary =
      fmt::format("{} {} {}", dispute.name, placed ? "is" : "has different values:", list);
  finding.fix = fix_of(Thing::kVariable, dispute.name);
  finding.details["variable"] = dispute.name;
  return finding;
}

/// The ranks print the addresses that they were given, or the log shows the commands, and a message
/// says that the rendezvous was not complete.
Findings told_by_logs(const graph::Examination& examination) {
  Findings findings;
  for (const AddressDispute& dispute : told_addresses(examination.job)) {
    const Confidence sure = dispute.decides ? Confidence::kLikely : Confidence::kPossible;
    std::map<model::Rank, std::string> values;
    bool named = true;
    for (const AddressCamp& camp : dispute.camps) {
      named = named && !camp.ranks.empty();
      for (const model::Rank rank : camp.ranks) {
        values.emplace(rank, camp.value);
      }
    }
    auto finding = named ? disagreement(examination, Thing::kVariable, dispute.name, values, sure)
                         : std::optional(nameless(dispute, sure));
    if (finding && named) {
      for (const auto& [rank, value] : values) {
        finding->waiting =
            finding->culprits.contains(rank) ? finding->waiting : finding->waiting.united({rank});
      }
      for (const AddressCamp& camp : dispute.camps) {
        finding->evidence.push_back({.rank = camp.ranks.front(), .text = "log: " + camp.line});
      }
    }
    if (finding) {
      findings.push_back(std::move(*finding));
    }
  }
  return findings;
}

Findings detect(const graph::Examination& examination) {
  if (Findings told = findings_from_text(examination, kKind); !told.empty()) {
    return without_culprits(std::move(told));
  }
  if (auto outside = rank_outside_world(examination)) {
    return {*std::move(outside)};
  }
  const auto still = stuck(examination);
  if (!still) {
    return {};
  }
  const bool meeting = !ranks_where(examination,
                                    [](const graph::Standing& standing) {
                                      return standing.activity == graph::Activity::kRendezvous;
                                    })
                            .empty() ||
                       default_group_is_two(examination);
  const bool together = all_in_one_gpu_call(examination);
  const RankProcesses ranks(examination.job);
  Findings findings;
  for (const MustAgree& variable : kVariables) {
    const bool of_nccl = variable.name.starts_with("NCCL_");
    const Confidence sure =
        (variable.decides && meeting) || (of_nccl && together) ? *still : Confidence::kPossible;
    if (auto finding = disagreement(examination, Thing::kVariable, variable.name,
                                    ranks.values_of(std::string(variable.name)), sure)) {
      findings.push_back(std::move(*finding));
    }
  }
  for (const std::string_view library : kLibraries) {
    if (auto finding =
            disagreement(examination, Thing::kLibrary,
                         fmt::format("{} version", library == "nccl" ? "NCCL" : "PyTorch"),
                         ranks.versions_of(library), together ? *still : Confidence::kPossible)) {
      findings.push_back(std::move(*finding));
    }
  }
  if (findings.empty()) {
    findings = told_by_logs(examination);
  }
  return findings;
}

}  // namespace

extern const Detector detector;
const Detector detector{
    .kind = kKind,
    .title = "Ranks run with different settings",
    .explanation =
        R"(What you see: ranks are in init_process_group although all were started, or the first collective of NCCL never finishes.

Why: WORLD_SIZE, MASTER_ADDR, MASTER_PORT and NCCL's settings must be the same everywhere; a shell profile or a container image on one
node sets a different value.

How ddpdoctor knows: it compares the environments of the ranks, or the values that they and their launchers print, and assumes that
the value of the majority is the intended one. Or more ranks joined the rendezvous than the world has, and one of them has a number
that the world does not have.

Fix: set the variable in the launcher, not in a profile of one node.
    - # ~/.bashrc of one node
    - export NCCL_ALGO=Ring
    + # the start script that every node runs
    + export NCCL_ALGO=Ring)",
    .detect = detect,
    .specificity = kPlaceOfCause,
};

}  // namespace ddpdoctor::detectors::environment_differs

// SPDX-License-Identifier: Apache-2.0
// Ranks and workers that outlived the process that started them. Only processes that certainly had
// a launcher count, because a user may start ranks by hand and log out.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/leftovers/leftover.h"
#include "collector/sources/processes/roles.h"

namespace ddpdoctor::leftovers {
namespace {

using sources::Candidates;
using sources::ProcessRow;
using sources::Program;

constexpr std::size_t kCommandWidth = 100;

/// Variables of launchers that keep running beside their ranks.
bool had_a_launcher(const std::map<std::string, std::string>& environment) {
  constexpr std::array<const char*, 3> kMarks{"TORCHELASTIC_RUN_ID", "ACCELERATE_USE_CPU",
                                              "PMI_RANK"};
  return std::any_of(kMarks.begin(), kMarks.end(),
                     [&environment](const char* name) { return environment.contains(name); });
}

/// The nearest ancestor of `row` that is not part of the same rank's job.
const ProcessRow* starter(Candidates& candidates, const ProcessRow& row) {
  const std::string job = candidates.claim(row.pid).job;
  const ProcessRow* above = candidates.parent(row.pid);
  for (int i = 0; i < sources::kDeepestTree && above != nullptr && above->pid != 1; ++i) {
    const sources::RankClaim& claim = candidates.claim(above->pid);
    if (!claim.rank || claim.job != job) {
      break;
    }
    above = candidates.parent(above->pid);
  }
  return above;
}

/// Init, a container's init or a subreaper: it adopted the process and did not start it.
std::optional<bool> took_it_over(const ProcessRow* above) {
  if (above == nullptr) {
    return std::nullopt;  // its parent is outside this container, or ended while we read
  }
  // A launcher may be the first process of its container, which roles.h treats as a boundary.
  ProcessRow row = *above;
  row.pid = std::max(row.pid, 2);
  const Program program = sources::program_of(row);
  if (program == Program::kLauncher || sources::runs_python(program) ||
      above->comm == "ddpdoctor") {
    return false;
  }
  if (above->pid == 1 || program == Program::kBoundary) {
    return true;
  }
  return program == Program::kOther ? std::nullopt : std::optional(false);
}

/// The role ("rank 3", "DataLoader worker"); empty when no launcher starts such a process.
std::string role_of(Candidates& candidates, const ProcessRow& row) {
  if (row.comm == sources::kDataLoaderComm) {
    return "DataLoader worker";
  }
  const Program program = candidates.program(row.pid);
  const sources::RankClaim claim = candidates.claim(row.pid);
  const bool launched = had_a_launcher(candidates.completed(row.pid).environment);
  if (claim.rank && !claim.weak && launched && program != Program::kLauncher &&
      program != Program::kResourceTracker && program != Program::kShmManager) {
    return fmt::format("rank {}", *claim.rank);
  }
  return program == Program::kSpawned ? "child of multiprocessing" : "";
}

Leftover described(Candidates& candidates, const ProcessRow& row, const Scope& scope) {
  Leftover out;
  out.kind = Kind::kProcess;
  out.name = fmt::format("process {}", row.pid);
  out.detail =
      base::elide(base::printable(fmt::format("{}", fmt::join(row.command, " "))), kCommandWidth);
  out.age = std::max(0.0, scope.now - row.start_time);
  out.uid = row.uid;
  out.rank = candidates.claim(row.pid).rank;
  out.pid = row.pid;
  out.start_ticks = row.start_ticks;
  return out;
}

}  // namespace

std::vector<Leftover> orphans(Candidates& candidates, const Scope& scope) {
  std::vector<Leftover> found;
  for (const auto& [pid, row] : candidates.table()) {
    if (row.kernel_thread || row.state == 'Z' || row.state == 'X') {
      continue;
    }
    const std::string role = role_of(candidates, row);
    const ProcessRow* above = role.empty() ? nullptr : starter(candidates, row);
    const auto orphaned = role.empty() ? std::optional(false) : took_it_over(above);
    if (orphaned == false || (!orphaned && above == nullptr)) {
      continue;
    }
    Leftover leftover = described(candidates, row, scope);
    if (orphaned) {
      leftover.state = row.uid == scope.uid ? State::kFree : State::kForeign;
      leftover.why = fmt::format("{}; its parent has exited, process {} ({}) took it over", role,
                                 above->pid, base::printable(above->comm));
    } else {
      leftover.why = fmt::format("{}; its parent, process {} ({}), is not a known launcher", role,
                                 above->pid, base::printable(above->comm));
    }
    found.push_back(std::move(leftover));
  }
  return found;
}

}  // namespace ddpdoctor::leftovers

// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/partings/deaths.h"

#include <algorithm>
#include <csignal>

#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/device_libraries.h"
#include "collector/detectors/evidence/gloo_words.h"
#include "collector/detectors/evidence/message_sizes.h"
#include "collector/detectors/evidence/processes.h"
#include "collector/detectors/evidence/told_timeouts.h"
#include "collector/detectors/partings/disagreed.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {
namespace {

using enum graph::Activity;

std::optional<model::Exit> exit_fact(const model::JobModel& job, model::Rank rank) {
  for (const model::Fact* fact : model::facts(job, "exit")) {
    if (fact->rank != rank || fact->text("role").value_or("rank") != "rank") {
      continue;
    }
    return exit_told_by(*fact);
  }
  return std::nullopt;
}

/// A rank exited with its own status: the launcher then ends the others.
bool a_rank_failed(const model::JobModel& job) {
  const auto all = processes(job);
  return std::any_of(all.begin(), all.end(), [&job](const model::Process* process) {
    const auto exit = process->rank ? exit_of(job, *process) : std::nullopt;
    return exit && !exit->signal && exit->status.value_or(0) != 0;
  });
}

/// Its last call failed because others had exited already: it failed because of them.
bool fell_after(const graph::Examination& examination, model::Rank rank) {
  const auto forsaken = forsaken_calls(examination);
  return std::any_of(forsaken.begin(), forsaken.end(), [&](const Forsaken& one) {
    return one.ranks.contains(rank) &&
           std::all_of(one.missing.begin(), one.missing.end(), [&](model::Rank missing) {
             const graph::Standing* standing = examination.standing(missing);
             return standing != nullptr &&
                    (standing->activity == kDead || standing->activity == kExited);
           });
  });
}

/// gloo ends a process whose call is matched with one of another size: it aborted in the call in
/// which the ranks disagree.
bool fell_by_disagreement(const graph::Examination& examination, const Death& death) {
  if (!death.exit || death.exit->signal != SIGABRT) {
    return false;
  }
  const std::vector<GlooSizes> said = gloo_sizes(examination.job);
  if (std::any_of(said.begin(), said.end(), [&death](const GlooSizes& sizes) {
        return sizes.rank.value_or(death.rank) == death.rank;
      })) {
    return true;
  }
  return fails_by_disagreement(examination, death.rank) ||
         overlong_message(examination, death.rank).has_value();
}

bool may_be_its_watchdog(const model::JobModel& job, const Death& death) {
  return death.exit && death.exit->signal == SIGABRT && may_have_timed_out(job, death.rank);
}

/// A kernel that waited for other ranks gave up and ended the process: device-kernel-stalled
/// reports it.
bool fell_by_kernel(const model::JobModel& job, const Death& death) {
  const auto timeouts = death.exit && death.exit->signal == SIGABRT ? device_timeouts(job)
                                                                    : std::vector<DeviceTimeout>{};
  return std::any_of(timeouts.begin(), timeouts.end(), [&death](const DeviceTimeout& one) {
    return one.waiting.value_or(death.rank) == death.rank;
  });
}

}  // namespace

std::vector<Death> deaths(const graph::Examination& examination) {
  std::vector<Death> out = absent_and_dead(examination);
  std::erase_if(out, [](const Death& death) { return death.exit && death.exit->status == 0; });
  for (const graph::Standing& standing : examination.standings) {
    if (standing.activity != kDead && standing.activity != kAbsent) {
      continue;
    }
    Death death{.rank = standing.rank,
                .exit = exit_fact(examination.job, standing.rank),
                .process = standing.process};
    if (standing.process != nullptr && standing.process->exit) {
      death.exit = standing.process->exit;
    }
    const bool told = std::any_of(
        out.begin(), out.end(), [&death](const Death& other) { return other.rank == death.rank; });
    if (!told && (standing.activity == kDead || (death.exit && death.exit->signal))) {
      out.push_back(death);
    }
  }
  const bool by_disagreement = std::any_of(out.begin(), out.end(), [&](const Death& death) {
    return fell_by_disagreement(examination, death);
  });
  std::erase_if(out, [&](const Death& death) {
    const bool cleaned_up =
        death.process != nullptr && was_cleaned_up(examination.job, *death.process);
    return cleaned_up || fell_after(examination, death.rank) ||
           fell_by_disagreement(examination, death) ||
           may_be_its_watchdog(examination.job, death) || fell_by_kernel(examination.job, death);
  });
  // The first to fail was not asked to exit.
  const bool by_itself =
      by_disagreement || a_rank_failed(examination.job) || !forsaken_calls(examination).empty() ||
      std::any_of(out.begin(), out.end(), [](const Death& death) {
        return death.exit && death.exit->signal && *death.exit->signal != SIGTERM;
      });
  if (by_itself) {
    std::erase_if(out,
                  [](const Death& death) { return death.exit && death.exit->signal == SIGTERM; });
  }
  // After the end of a job, ranks without an observed exit ended with their launcher.
  const auto seen = processes(examination.job);
  const bool over = std::none_of(seen.begin(), seen.end(), [](const model::Process* process) {
    return process->rank && alive(*process);
  });
  if (over) {  // no rank is left that waits, so they may also have ended successfully
    std::erase_if(out, [](const Death& death) { return !death.exit; });
  }
  return out;
}

}  // namespace ddpdoctor::detectors

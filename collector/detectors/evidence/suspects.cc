// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/suspects.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/processes.h"
#include "collector/detectors/evidence/signs.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/graph/servers.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {
namespace {

/// Seconds without progress after which a single snapshot may show a hang: DDP steps and batches
/// take seconds, and `run`'s default --hang-timeout is the same.
constexpr double kSurelyHungSeconds = 30;

constexpr int kMaxEvidence = 8;  // a report is for people; the rest is in `processes`

Location location_of(const Suspect& suspect, const std::vector<Suspect>& all) {
  Location location{.rank = suspect.rank,
                    .ranks = {},
                    .file = suspect.place.file,
                    .line = suspect.place.line,
                    .function = suspect.place.function,
                    .note = suspect.note};
  for (const Suspect& other : all) {
    if (other.rank && other.place == suspect.place) {
      location.ranks.insert(*other.rank);
    }
  }
  return location;
}

void add_pids(const std::vector<Suspect>& suspects, Finding& finding) {
  std::set<pid_t> pids;
  for (const Suspect& suspect : suspects) {
    if (suspect.process != nullptr) {
      pids.insert(suspect.process->pid);
    }
  }
  if (pids.size() == 1) {
    finding.details["pid"] = static_cast<std::int64_t>(*pids.begin());
  } else if (pids.size() > 1) {
    std::vector<std::string> texts;
    for (const pid_t pid : pids) {
      texts.push_back(std::to_string(pid));
    }
    finding.details["pids"] = std::move(texts);
  }
}

/// "in all_reduce", "for its GPU": the words after "is waiting here".
std::string place_of_wait(const graph::Standing& standing) {
  if (standing.call && !standing.call->operation.empty()) {
    return "in " + standing.call->operation;
  }
  constexpr std::string_view kWaiting = "waiting ";
  std::string_view name = graph::activity_name(standing.activity);
  name.remove_prefix(name.starts_with(kWaiting) ? kWaiting.size() : 0);
  return std::string(name);
}

}  // namespace

Suspect suspect_in(const graph::Examination& examination, const model::Process& process,
                   const model::Thread* thread) {
  Suspect suspect{.rank = served_rank(examination.job, process),
                  .process = &process,
                  .thread = thread,
                  .place = {},
                  .note = {},
                  .evidence = {}};
  if (const model::Frame* frame = thread == nullptr ? nullptr : own_user_frame(*thread)) {
    suspect.place = model::call_site(*frame);
  }
  return suspect;
}

std::string is_here(const model::RankSet& ranks, const graph::Standing& standing) {
  const std::string here = ranks_do(ranks, "is here", "are here");
  const std::string in = place_of_wait(standing);
  return standing.waits_for_ranks() && in.starts_with("in ") ? here + ", " + in : here;
}

std::vector<std::vector<Suspect>> by_place(std::vector<Suspect> suspects) {
  std::map<std::pair<std::string, int>, std::vector<Suspect>> places;
  for (Suspect& suspect : suspects) {
    places[{suspect.place.file, suspect.place.line}].push_back(std::move(suspect));
  }
  const auto order = [](const Suspect& a, const Suspect& b) {
    const pid_t pid_a = a.process == nullptr ? 0 : a.process->pid;
    const pid_t pid_b = b.process == nullptr ? 0 : b.process->pid;
    return std::pair(a.rank.value_or(model::kMaxWorldSize), pid_a) <
           std::pair(b.rank.value_or(model::kMaxWorldSize), pid_b);
  };
  std::vector<std::vector<Suspect>> out;
  for (auto& [place, there] : places) {
    std::stable_sort(there.begin(), there.end(), order);
    out.push_back(std::move(there));
  }
  std::stable_sort(out.begin(), out.end(),
                   [&order](const auto& a, const auto& b) { return order(a.front(), b.front()); });
  return out;
}

void add_where_accused_stand(const graph::Examination& examination, Finding& finding) {
  std::map<model::CallSite, model::RankSet> places;
  for (const model::Rank rank : finding.culprits) {
    const graph::Standing* standing = examination.standing(rank);
    if (standing != nullptr && standing->user.known()) {
      places[standing->user].insert(rank);
    }
  }
  for (const auto& [site, ranks] : places) {
    finding.locations.push_back(
        location(site, ranks, fmt::format("{} {} here", said(ranks), is_or_are(ranks))));
  }
}

Finding accuse(const graph::Examination& examination, std::string_view kind,
               const std::vector<Suspect>& suspects) {
  Finding finding;
  finding.kind = kind;
  std::set<std::pair<std::string, int>> placed;
  for (const Suspect& suspect : suspects) {
    if (suspect.rank) {
      finding.culprits.insert(*suspect.rank);
    }
    finding.confidence = std::max(finding.confidence, suspect.confidence);
    if (suspect.place.known() && placed.insert({suspect.place.file, suspect.place.line}).second) {
      finding.locations.push_back(location_of(suspect, suspects));
    }
    if (suspect.retry.known() && placed.insert({suspect.retry.file, suspect.retry.line}).second) {
      finding.locations.push_back(location(suspect.retry, {}, "calls it again after an exception"));
    }
    if (!suspect.evidence.empty() && finding.evidence.size() < kMaxEvidence) {
      finding.evidence.push_back({.rank = suspect.rank, .text = suspect.evidence});
    }
  }
  if (finding.locations.empty()) {
    add_where_accused_stand(examination, finding);
  }
  add_pids(suspects, finding);
  add_waiting(examination, finding);
  return finding;
}

void add_waiting(const graph::Examination& examination, Finding& finding) {
  add_waiting(examination, waiting_ranks(examination).minus(finding.culprits), finding);
}

void add_waiting(const graph::Examination& examination, model::RankSet waiting, Finding& finding) {
  finding.waiting = std::move(waiting);
  std::map<std::pair<model::CallSite, std::string>, model::RankSet> places;
  for (const model::Rank rank : finding.waiting) {
    const graph::Standing* standing = examination.standing(rank);
    if (standing != nullptr && standing->user.known()) {
      places[{standing->user, place_of_wait(*standing)}].insert(rank);
    }
  }
  for (const auto& [place, ranks] : places) {
    finding.locations.push_back(
        location(place.first, ranks,
                 waiting_here(examination.job, ranks,
                              place.second == "for its GPU" && ranks.size() > 1 ? "for their GPUs"
                                                                                : place.second)));
  }
}

void add_batch_readers(const graph::Examination& examination, Finding& finding) {
  const model::RankSet readers = ranks_where(examination, [](const graph::Standing& standing) {
    return standing.activity == graph::Activity::kDataLoader && standing.user.known();
  });
  const bool known = std::any_of(
      finding.locations.begin(), finding.locations.end(), [&finding](const Location& one) {
        return one.ranks.minus(finding.waiting) != model::RankSet{} || one.ranks.empty();
      });
  if (known || !finding.culprits.empty()) {
    return;
  }
  Finding of_readers;
  add_waiting(examination, readers, of_readers);
  finding.waiting = finding.waiting.united(readers);
  finding.locations.insert(finding.locations.begin(), of_readers.locations.begin(),
                           of_readers.locations.end());
}

std::optional<Confidence> stuck(const graph::Examination& examination) {
  const bool at_work = !working_ranks(examination).empty();
  if (!at_work && (examination.job.seconds_without_progress.value_or(0) >= kSurelyHungSeconds ||
                   examination.still())) {
    return Confidence::kLikely;
  }
  if (examination.job.progress == model::Progress::kMoving) {
    return std::nullopt;
  }
  return Confidence::kPossible;
}

Confidence unless_somebody_acts(const graph::Examination& examination, Confidence confidence) {
  return graph::an_outsider_goes_on(examination.job) ? Confidence::kPossible : confidence;
}

std::string common_writer(const std::vector<Suspect>& suspects) {
  const std::string& first = suspects.front().writer;
  const bool common = std::all_of(suspects.begin(), suspects.end(), [&first](const Suspect& one) {
    return !one.rank && one.writer == first;
  });
  return common ? first : std::string();
}

std::string who(const std::vector<Suspect>& suspects) {
  model::RankSet ranks;
  for (const Suspect& suspect : suspects) {
    if (suspect.rank) {
      ranks.insert(*suspect.rank);
    }
  }
  if (!ranks.empty()) {
    return said(ranks);
  }
  if (suspects.empty() || suspects.front().process == nullptr) {
    return "a process of the job";
  }
  return fmt::format("process {}", suspects.front().process->pid);
}

std::string and_who_waits(const Finding& finding) {
  if (finding.waiting.empty()) {
    return {};
  }
  return fmt::format("; {} wait{} for {}", said(finding.waiting),
                     finding.waiting.size() == 1 ? "s" : "",
                     finding.culprits.size() > 1 ? "them" : "it");
}

}  // namespace ddpdoctor::detectors

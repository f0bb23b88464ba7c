// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/partings/apart_behind_gpus.h"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/behind_gpus.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/detectors/paths/source_path.h"

namespace ddpdoctor::detectors {
namespace {

/// The ranks by their line.
std::vector<Camp> by_line(const graph::Examination& examination, const model::RankSet& ranks) {
  std::map<model::Rank, std::string> lines;
  for (const model::Rank rank : ranks) {
    const graph::Standing& standing = *examination.standing(rank);
    lines[rank] = fmt::format("{}:{}", standing.user.file, standing.user.line);
  }
  return camps(lines);
}

Location wait_of(const model::CallSite& site, const model::RankSet& ranks) {
  return location(
      site, ranks,
      ranks_do(ranks, "is waiting for its GPU here", "are waiting for their GPUs here"));
}

/// Stages of a pipeline run different code, and wait for each other at different lines.
bool is_in_pipeline(const graph::Standing& standing) {
  constexpr std::array<std::string_view, 3> kStages = {"pipeline", "pipelining", "/pipe/"};
  return std::any_of(
      standing.thread->frames.begin(), standing.thread->frames.end(),
      [&kStages](const model::Frame& frame) { return base::contains_any(frame.file, kStages); });
}

}  // namespace

Findings apart_behind_gpus(const graph::Examination& examination) {
  const model::RankSet behind = behind_their_gpus(examination);
  const auto all = by_line(examination, behind);
  if (behind.size() != examination.standings.size() || examination.job.ended || all.size() != 2 ||
      all.back().ranks.size() < 2) {
    return {};
  }
  const model::RankSet& rest = all.front().ranks;
  const model::RankSet& odd = all.back().ranks;
  const graph::Standing& here = *examination.standing(rest.front());
  const graph::Standing& there = *examination.standing(odd.front());
  const auto fork = fork_of(python_path(*there.thread), python_path(*here.thread));
  if (!fork || !here.user.known() || !there.user.known() || is_in_pipeline(here) ||
      is_in_pipeline(there)) {
    return {};
  }
  Finding finding;
  finding.kind = "divergent-branch";
  finding.confidence = Confidence::kPossible;
  finding.culprits = odd.size() < rest.size() ? odd : model::RankSet{};
  finding.waiting = behind.minus(finding.culprits);
  finding.summary = fmt::format(
      "{} in {} ({}), {} in {} ({}): they diverged in {}",
      ranks_do(odd, "is waiting for its GPU", "are waiting for their GPUs"),
      named_function(there.user.function), line_of(there.user), said(rest),
      named_function(here.user.function), line_of(here.user), named_function(fork->ours.function));
  finding.locations = {wait_of(there.user, odd), wait_of(here.user, rest)};
  if (!graph::same_line(fork->ours, there.user)) {
    const bool one_line = graph::same_line(fork->ours, fork->theirs);
    finding.locations.push_back(
        location(fork->ours, {},
                 one_line ? "the ranks took different paths from here"
                          : fmt::format("{} came through here, {} through line {}", said(odd),
                                        said(rest), fork->theirs.line)));
  }
  finding.evidence.push_back(
      {.rank = std::nullopt,
       .text =
           "hosts that run the same code stop at the same line when their GPUs do not proceed"});
  finding.fix = fmt::format(
      "Compare the conditions between {} and these two lines on one rank of each side. A "
      "flight-recorder dump (TORCH_FR_BUFFER_SIZE=2000) or `ddpdoctor run` names the calls.",
      named_function(fork->ours.function));
  return {std::move(finding)};
}

}  // namespace ddpdoctor::detectors

// SPDX-License-Identifier: Apache-2.0
// Clocks of different machines are not compared: looks are matched by their place from the end, not
// by their time.
#include "collector/imports/merge.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "collector/imports/merge_parts.h"
#include "collector/imports/second_look.h"

namespace ddpdoctor::imports {

void merge_observations(std::vector<model::Observation>& whole,
                        std::vector<model::Observation> part) {
  if (part.size() > whole.size()) {
    std::swap(whole, part);
  }
  const std::size_t older = whole.size() - part.size();
  for (std::size_t i = 0; i < part.size(); ++i) {
    append(whole[older + i].processes, std::move(part[i].processes));
  }
}

void merge_groups(std::vector<model::ProcessGroup>& whole, std::vector<model::ProcessGroup> part) {
  for (model::ProcessGroup& group : part) {
    const auto known =
        std::find_if(whole.begin(), whole.end(),
                     [&group](const model::ProcessGroup& other) { return other.id == group.id; });
    if (known == whole.end()) {
      whole.push_back(std::move(group));
    } else if (known->ranks.empty()) {
      known->ranks = std::move(group.ranks);
    }
  }
}

void merge_coverage(model::Coverage& whole, model::Coverage part) {
  append(whole.observed, std::move(part.observed));
  append(whole.unobserved, std::move(part.unobserved));
  append(whole.warnings, std::move(part.warnings));
  whole.events_lost += part.events_lost;
}

void drop_repeats(std::vector<std::string>& sentences) {
  std::vector<std::string> out;
  for (std::string& sentence : sentences) {
    if (!sentence.empty() && std::find(out.begin(), out.end(), sentence) == out.end()) {
      out.push_back(std::move(sentence));
    }
  }
  sentences = std::move(out);
}

namespace {

/// "0-6,8"; nothing when it is no such text.
std::optional<model::RankSet> ranks_in(std::string_view text) {
  std::vector<model::Rank> ranks;
  const auto take = [&text]() -> std::optional<model::Rank> {
    model::Rank rank = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), rank);
    if (error != std::errc() || rank < 0 || rank >= model::kMaxWorldSize) {
      return std::nullopt;
    }
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return rank;
  };
  while (!text.empty()) {
    const auto first = take();
    if (!first) {
      return std::nullopt;
    }
    model::Rank last = *first;
    if (text.starts_with('-')) {
      text.remove_prefix(1);
      last = take().value_or(-1);
    }
    if (last < *first || ranks.size() > model::kMaxWorldSize) {
      return std::nullopt;
    }
    for (model::Rank rank = *first; rank <= last; ++rank) {
      ranks.push_back(rank);
    }
    if (!text.empty() && !text.starts_with(',')) {
      return std::nullopt;
    }
    text.remove_prefix(text.empty() ? 0 : 1);
  }
  return model::RankSet(std::move(ranks));
}

/// "ranks 2-3: run on another machine" without those that another capture saw; empty when it saw
/// all of them.
std::string without_seen(const std::string& sentence, const model::RankSet& seen) {
  constexpr std::array<std::string_view, 4> kNotHere = {
      ": runs on another machine", ": run on another machine",
      ": no process of it was found on this machine", ": only one process was asked for"};
  for (const std::string_view why : kNotHere) {
    std::string_view who = sentence;
    if (!who.ends_with(why)) {
      continue;
    }
    who.remove_suffix(why.size());
    who.remove_prefix(who.starts_with("ranks ") ? 6 : who.starts_with("rank ") ? 5 : who.size());
    const auto ranks = ranks_in(who);
    if (!ranks || ranks->common(seen).empty()) {
      return sentence;
    }
    const model::RankSet left = ranks->minus(seen);
    return left.empty() ? std::string() : left.said() + std::string(why);
  }
  return sentence;
}

/// "2 of 4 ranks run on this machine (0-1); the others …", where others were seen.
bool speaks_of_one_machine(const std::string& warning, const model::RankSet& seen) {
  constexpr std::string_view kHere = " ranks run on this machine (";
  const std::size_t at = warning.find(kHere);
  const std::size_t end = at == std::string::npos ? at : warning.find(')', at);
  if (end == std::string::npos) {
    return false;
  }
  const std::size_t from = at + kHere.size();
  const auto here = ranks_in(std::string_view(warning).substr(from, end - from));
  return here && !seen.minus(*here).empty();
}

/// What one capture could not see another may have seen.
void forget_seen_ranks(model::JobModel& whole) {
  std::vector<model::Rank> ranks;
  for (const model::Observation& observation : whole.observations) {
    for (const model::Process& process : observation.processes) {
      if (process.rank && process.role == model::Role::kRank && !process.threads.empty()) {
        ranks.push_back(*process.rank);
      }
    }
  }
  const model::RankSet seen(std::move(ranks));
  whole.coverage.unobserved_ranks = whole.coverage.unobserved_ranks.minus(seen);
  for (std::string& sentence : whole.coverage.unobserved) {
    sentence = without_seen(sentence, seen);
  }
  drop_repeats(whole.coverage.unobserved);
  std::erase_if(whole.coverage.warnings, [&seen](const std::string& warning) {
    return speaks_of_one_machine(warning, seen);
  });
}

void warn_of_another_job(const model::RankSet& ranks, model::JobModel& whole) {
  if (!ranks.empty()) {
    whole.coverage.warnings.push_back(
        fmt::format("{} {} another process in each of the files: are they of one job?",
                    ranks.said(), ranks.size() == 1 ? "is" : "are"));
  }
}

/// A log says nothing about whether the job moves or is over: another capture does.
bool is_mere_log(const model::JobModel& job) {
  return !job.logs.empty() && job.observations.empty() && job.collectives.empty();
}

model::Progress merged(model::Progress a, model::Progress b) {
  if (a == model::Progress::kMoving || b == model::Progress::kMoving) {
    return model::Progress::kMoving;
  }
  return a == b ? a : model::Progress::kUnknown;
}

}  // namespace

void merge(model::JobModel& whole, model::JobModel part) {
  if (show_one_process(whole, part)) {
    const std::optional<int> size = std::max(whole.world_size, part.world_size);
    const model::RankSet unseen =
        whole.coverage.unobserved_ranks.united(part.coverage.unobserved_ranks);
    join_looks(whole, std::move(part));
    whole.world_size = size;
    whole.coverage.unobserved_ranks = unseen;
    forget_seen_ranks(whole);
    return;
  }
  const model::RankSet others = ranks_of_other_processes(whole, part);
  const bool only_part_looked = is_mere_log(whole) && !is_mere_log(part);
  const bool both_looked = !is_mere_log(whole) && !is_mere_log(part);
  whole.world_size = std::max(whole.world_size, part.world_size);
  if (whole.command.empty()) {
    whole.command = std::move(part.command);
  }
  for (std::string& host : part.hosts) {
    if (std::find(whole.hosts.begin(), whole.hosts.end(), host) == whole.hosts.end()) {
      whole.hosts.push_back(std::move(host));
    }
  }
  if (!whole.launcher_pid) {
    whole.launcher_pid = part.launcher_pid;
  }
  merge_groups(whole.groups, std::move(part.groups));
  merge_observations(whole.observations, std::move(part.observations));
  append(whole.collectives, std::move(part.collectives));
  append(whole.facts, std::move(part.facts));
  append(whole.logs, std::move(part.logs));
  for (auto& [file, lines] : part.sources) {
    whole.sources[file].merge(lines);
  }
  whole.coverage.unobserved_ranks =
      whole.coverage.unobserved_ranks.united(part.coverage.unobserved_ranks);
  merge_coverage(whole.coverage, std::move(part.coverage));
  forget_seen_ranks(whole);
  warn_of_another_job(others, whole);
  if (both_looked) {
    whole.progress = merged(whole.progress, part.progress);
    whole.ended = whole.ended && part.ended;
    whole.history_complete = whole.history_complete && part.history_complete;
  } else if (only_part_looked) {
    whole.progress = part.progress;
    whole.ended = part.ended;
    whole.history_complete = part.history_complete;
    whole.seconds_without_progress = part.seconds_without_progress;
  }
  if (part.seconds_without_progress && whole.seconds_without_progress) {
    whole.seconds_without_progress =
        std::min(*whole.seconds_without_progress, *part.seconds_without_progress);
  }
}

}  // namespace ddpdoctor::imports

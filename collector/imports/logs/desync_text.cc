// SPDX-License-Identifier: Apache-2.0
// In the form of torch 1.11 – 2.13 (TraceUtils.h, ProcessGroupNCCL.cpp).
#include "collector/imports/logs/desync_text.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/text.h"
#include "collector/imports/capture/parts.h"
#include "collector/imports/stack_dumps/stack_text.h"
#include "collector/model/listed_ranks.h"
#include "collector/model/operations.h"

namespace ddpdoctor::imports {
namespace {

constexpr std::size_t kMostRanks = 70'000;  // ranks in one report

/// "#315 started ranks:", "#182 finished ranks:".
std::optional<model::CollectiveCall> heading(std::string_view line) {
  if (!take_prefix(line, "#")) {
    return std::nullopt;
  }
  const auto number = take_number(line, kMaxNumber);
  const bool started = line == " started ranks:";
  if (!number || (!started && line != " finished ranks:")) {
    return std::nullopt;
  }
  model::CollectiveCall call;
  call.group = "0";
  call.sequence = *number;
  call.state = started ? model::CallState::kStarted : model::CallState::kCompleted;
  return call;
}

}  // namespace

void DesyncReport::read(std::string_view line, std::optional<model::Rank> whose) {
  line = base::trim(line);
  if (line.find("] Timeout at collective: ") != line.npos) {
    author_ = whose ? whose : author_;
    newest_.clear();  // every rank prints its knowledge: the last report is the most complete
    heading_.reset();
    return;
  }
  if (auto begun = heading(line)) {
    heading_ = std::move(*begun);
    return;
  }
  const auto ranks = heading_ && line.starts_with('[') ? between(line, "[", "] ") : std::nullopt;
  if (!ranks) {
    return;
  }
  std::string_view rest = line.substr(ranks->size() + 3);
  if (!take_prefix(rest, "started ") && !take_prefix(rest, "finished ")) {
    return;
  }
  for (const model::Rank rank : model::listed_ranks(*ranks).ranks) {
    if (newest_.size() < kMostRanks) {
      model::CollectiveCall call = *heading_;
      call.rank = rank;
      call.operation = model::operation_of(rest.substr(0, kLongestName)).name;
      newest_[call.rank] = std::move(call);
    }
  }
}

std::vector<model::CollectiveCall> DesyncReport::calls() const {
  std::vector<model::CollectiveCall> out;
  std::int64_t last = INT64_MAX;  // call of the ranks that are furthest behind
  for (const auto& [rank, call] : newest_) {
    last = std::min(last, call.sequence);
  }
  const bool finished = std::any_of(newest_.begin(), newest_.end(), [last](const auto& one) {
    return one.second.sequence == last && model::is_over(one.second.state);
  });
  for (const auto& [rank, call] : newest_) {
    out.push_back(call);
    // The others reached the next call, whatever it was.
    if (finished && call.sequence > last + 1) {
      out.push_back(call);
      out.back().sequence = last + 1;
      out.back().operation.clear();
    }
  }
  return out;
}

namespace {

bool has_fact(const model::JobModel& job, std::string_view kind, std::optional<model::Rank> rank) {
  return std::any_of(job.facts.begin(), job.facts.end(), [&](const model::Fact& fact) {
    return fact.kind == kind && fact.rank == rank;
  });
}

}  // namespace

void read_unnumbered_timeout(std::string_view line, std::optional<model::Rank> whose,
                             model::JobModel& job) {
  const auto work = between(line, "collective operation timeout: WorkNCCL(", ") ran for ");
  const auto ran = number_behind(line, " ran for ", kMaxNumber);
  if (!work || !ran || !whose || work->find("SeqNum=") != work->npos ||
      has_fact(job, "watchdog-timeout", whose)) {
    return;
  }
  model::Fact fact{.rank = whose, .pid = {}, .kind = "watchdog-timeout", .fields = {}};
  fact.fields["seconds"] = static_cast<double>(*ran) / 1000;
  fact.fields["operation"] = model::operation_of(between(*work, "OpType=", ",").value_or("")).name;
  job.facts.push_back(std::move(fact));
  job.ended = job.ended || job.observations.empty();  // torch ends the process
}

void read_stuck_watchdog(std::string_view line, std::optional<model::Rank> whose,
                         model::JobModel& job) {
  const auto told = between(line, "watchdog got stuck for ", " seconds");
  const auto seconds = told ? number_of(*told, kMaxNumber) : std::nullopt;
  if (seconds && whose && !has_fact(job, "watchdog-stuck", whose)) {
    job.facts.push_back(
        {.rank = whose, .pid = {}, .kind = "watchdog-stuck", .fields = {{"seconds", *seconds}}});
  }
}

void read_watchdog_error(std::string_view line, std::optional<model::Rank> whose,
                         model::JobModel& job) {
  const bool told = line.find("watchdog thread terminated with exception: ") != line.npos;
  if (told && whose && !has_fact(job, "watchdog-error", whose)) {
    job.facts.push_back({.rank = whose, .pid = {}, .kind = "watchdog-error", .fields = {}});
  }
}

}  // namespace ddpdoctor::imports

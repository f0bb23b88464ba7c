// SPDX-License-Identifier: Apache-2.0
// The check runs in the thread of gloo's sockets, where no code catches its exception: the process
// aborts without a traceback.
#include "collector/detectors/evidence/gloo_words.h"

#include <charconv>
#include <csignal>
#include <string_view>

#include "base/text.h"
#include "collector/detectors/evidence/processes.h"
#include "collector/detectors/evidence/tracebacks.h"

namespace ddpdoctor::detectors {
namespace {

constexpr std::size_t kMostSizes = 1000;

std::optional<std::int64_t> take_size(std::string_view& text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end == text.data() || value < 0) {
    return std::nullopt;
  }
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

std::optional<GlooSizes> sizes_in(const LogLine& line) {
  constexpr std::string_view kCheck = "op.preamble.length <= op.nbytes. ";
  constexpr std::string_view kVersus = " vs ";
  const std::size_t at = line.text.find(kCheck);
  if (at == std::string_view::npos) {
    return std::nullopt;
  }
  std::string_view rest = line.text.substr(at + kCheck.size());
  const auto received = take_size(rest);
  if (!received || !rest.starts_with(kVersus)) {
    return std::nullopt;
  }
  rest.remove_prefix(kVersus.size());
  const auto expected = take_size(rest);
  if (!expected) {
    return std::nullopt;
  }
  return GlooSizes{.rank = line.rank,
                   .received = *received,
                   .expected = *expected,
                   .line = std::string(base::trim(line.text))};
}

/// The only rank known to have aborted.
std::optional<model::Rank> who_aborted(const model::JobModel& job) {
  model::RankSet aborted;
  for (const model::Process* process : processes(job)) {
    const auto exit = process->rank ? exit_of(job, *process) : std::nullopt;
    if (exit && exit->signal == SIGABRT) {
      aborted.insert(*process->rank);
    }
  }
  return aborted.size() == 1 ? std::optional(aborted.front()) : std::nullopt;
}

}  // namespace

std::vector<GlooSizes> gloo_sizes(const model::JobModel& job) {
  std::vector<GlooSizes> out;
  if (job.logs.empty()) {
    return out;
  }
  for (const LogStream& stream : log_streams(job)) {
    for (const LogLine& line : stream) {
      auto sizes = out.size() < kMostSizes ? sizes_in(line) : std::nullopt;
      if (sizes) {
        out.push_back(std::move(*sizes));
      }
    }
  }
  if (out.size() == 1 && !out.front().rank) {
    out.front().rank = who_aborted(job);
  }
  return out;
}

}  // namespace ddpdoctor::detectors

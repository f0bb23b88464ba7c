// SPDX-License-Identifier: Apache-2.0
// SGLang: entrypoints/engine.py; text-generation-inference: launcher/src/main.rs, as text or one
// JSON object a line; composer: cli/launcher.py.
#include "collector/imports/logs/server_text.h"

#include <csignal>
#include <optional>
#include <utility>
#include <vector>

#include "base/text.h"
#include "collector/imports/capture/parts.h"
#include "collector/imports/logs/torchrun_text.h"
#include "collector/imports/stack_dumps/stack_text.h"
#include "collector/model/log_lines.h"
#include "collector/model/told_by_logs.h"

namespace ddpdoctor::imports {
namespace {

constexpr std::size_t kMostDead = 4096;

/// "-9" of Python's multiprocessing is a signal.
std::optional<model::Exit> exit_of_python(std::string_view text) {
  const bool by_signal = take_prefix(text, "-");
  const auto number = take_number(text, 255);
  const auto code = static_cast<int>(number.value_or(0));
  return !number     ? std::nullopt
         : by_signal ? std::optional(model::Exit{.status = {}, .signal = code})
                     : std::optional(model::Exit{.status = code, .signal = {}});
}

model::Process dead(std::int64_t rank, model::Exit exit) {
  model::Process process = failed_rank();
  process.rank = static_cast<model::Rank>(rank);
  process.exit = exit;
  return process;
}

/// The number before " scheduler is dead. Please check".
std::optional<std::int64_t> dead_scheduler(std::string_view line) {
  return line.find(" scheduler is dead. Please check") == line.npos
             ? std::nullopt
             : number_behind(line, "Rank ", kMaxRank);
}

std::optional<model::Process> of_composer(std::string_view line) {
  constexpr std::string_view kCrashed = " crashed with exit code ";
  const std::size_t at = line.find(kCrashed);
  const std::size_t rank = at == line.npos ? at : line.rfind("Rank ", at);
  if (rank == line.npos) {
    return std::nullopt;
  }
  const auto number = number_of(line.substr(rank + 5, at - rank - 5), kMaxRank);
  const auto exit = exit_of_python(line.substr(at + kCrashed.size()));
  return number && exit ? std::optional(dead(*number, *exit)) : std::nullopt;
}

std::optional<model::Process> of_shard(std::string_view line) {
  constexpr std::string_view kSignaled = "Shard process was signaled to shutdown with signal ";
  if (line.find(kSignaled) == line.npos) {
    return std::nullopt;
  }
  const auto signal = number_behind(line, kSignaled, 64);
  auto rank = number_behind(line, " rank=", kMaxRank);
  rank = rank ? rank : number_behind(line, "\"rank\":", kMaxRank);
  return signal && rank
             ? std::optional(dead(*rank, {.status = {}, .signal = static_cast<int>(*signal)}))
             : std::nullopt;
}

}  // namespace

void read_server_text(std::string_view log, model::JobModel& job) {
  std::vector<model::Process> out;
  std::int64_t scheduler = -1;  // the dead one whose exit code is told below; -1: none
  for (const std::string_view raw : base::split(log, '\n')) {
    const model::LogLine read = model::read_log_line(raw.substr(0, kLongestLogLine));
    const std::string_view line = read.text;
    if (read.rank && line.find("Scheduler watchdog timeout (") != line.npos) {
      job.facts.push_back({.rank = read.rank,
                           .pid = {},
                           .kind = std::string(model::kServerWatchdog),
                           .fields = {}});
    }
    const std::size_t code = line.find("Exit code: ");
    const auto exit =
        scheduler >= 0 && code != line.npos ? exit_of_python(line.substr(code + 11)) : std::nullopt;
    auto process = exit ? std::optional(dead(scheduler, *exit)) : of_composer(line);
    process = process ? std::move(process) : of_shard(line);
    scheduler = dead_scheduler(line).value_or(exit ? -1 : scheduler);
    if (process && out.size() < kMostDead && process->exit->signal != SIGTERM) {
      out.push_back(std::move(*process));
    }
  }
  add_ended(std::move(out), job);
}

}  // namespace ddpdoctor::imports

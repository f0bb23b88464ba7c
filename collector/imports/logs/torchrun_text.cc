// SPDX-License-Identifier: Apache-2.0
// torch.distributed.elastic: the table of ChildFailedError, and the files that @record writes.
#include "collector/imports/logs/torchrun_text.h"

#include <algorithm>
#include <cmath>
#include <csignal>
#include <ctime>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/imports/capture/parts.h"
#include "collector/imports/documents/json_cursor.h"
#include "collector/imports/documents/json_text.h"
#include "collector/imports/logs/timed_out.h"
#include "collector/imports/stack_dumps/dump_processes.h"
#include "collector/imports/stack_dumps/stack_text.h"
#include "collector/model/log_lines.h"
#include "collector/model/secrets.h"
#include "collector/model/told_by_logs.h"

namespace ddpdoctor::imports {
namespace {

constexpr std::size_t kMostFailures = 70'000;
// The signal with which torchrun ends the others after one has failed.
constexpr int kTerminated = 15;

/// "exitcode  : -9 (pid: 12345)" → "-9 (pid: 12345)" for "exitcode".
std::optional<std::string_view> field_of_line(std::string_view line, std::string_view name) {
  line = base::trim(line);
  if (!take_prefix(line, name)) {
    return std::nullopt;
  }
  line = base::trim(line);
  return take_prefix(line, ":") ? std::optional(base::trim(line)) : std::nullopt;
}

model::Exit exit_of(std::string_view text) {
  const bool signal = take_prefix(text, "-");
  const auto number = static_cast<int>(take_number(text, 255).value_or(1));
  return signal ? model::Exit{.status = {}, .signal = number}
                : model::Exit{.status = number, .signal = {}};
}

void read_field(std::string_view line, model::Process& process) {
  if (const auto host = field_of_line(line, "host")) {
    process.host = base::elide(*host, 256);
  } else if (const auto rank = field_of_line(line, "rank")) {
    std::string_view text = *rank;
    if (const auto number = take_number(text, kMaxRank)) {
      process.rank = static_cast<model::Rank>(*number);
    }
  } else if (const auto code = field_of_line(line, "exitcode")) {
    process.exit = exit_of(*code);
    process.pid = pid_of(between(*code, "(pid: ", ")").value_or("")).value_or(0);
  }
}

bool begins_failure(std::string_view line) {
  line = base::trim(line);
  return take_prefix(line, "[") && take_number(line, kMostFailures) && line == "]:";
}

struct Failures {
  std::vector<model::Process> own;
  std::vector<model::Rank> ended;  // ended by the launcher, because another rank had failed
  std::optional<model::Rank> first;
};

Failures failures_in(std::string_view log) {
  std::vector<model::Process> out;
  bool inside = false;
  std::size_t first_root = 0;
  for (const std::string_view raw : base::split(log, '\n')) {
    const std::string_view line = model::read_log_line(raw).text;
    if (base::trim(line).starts_with("Root Cause")) {
      first_root = out.size();
    } else if (begins_failure(line)) {
      inside = out.size() < kMostFailures;
      if (inside) {
        out.push_back(failed_rank());
      }
    } else if (base::trim(line).starts_with("=====")) {
      inside = false;
    } else if (inside) {
      read_field(line, out.back());
    }
  }
  // torchrun compares the times of error files: a file written while a rank was being ended may be
  // older than the end of the rank that failed first.
  const bool fell = std::any_of(out.begin(), out.end(), [](const model::Process& one) {
    return one.rank && one.exit && one.exit->signal != kTerminated;
  });
  Failures told;
  for (std::size_t i = 0; i < out.size(); ++i) {
    const bool ended_by_launcher =
        (i < first_root || fell) && out[i].exit && out[i].exit->signal == kTerminated;
    if (i >= first_root && !ended_by_launcher) {
      told.first = out[i].rank;
    }
    if (out[i].rank && ended_by_launcher) {
      told.ended.push_back(*out[i].rank);
    } else if (out[i].rank && out[i].exit) {
      told.own.push_back(std::move(out[i]));
    }
  }
  return told;
}

/// For a traceback without a time, a log has only the time of its first line.
std::string moment(double seconds) {
  const auto whole = static_cast<std::time_t>(seconds);
  std::tm parts{};
  if (::gmtime_r(&whole, &parts) == nullptr) {
    return {};
  }
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02} ", parts.tm_year + 1900, parts.tm_mon + 1,
                     parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec);
}

/// A number, or the number in a text.
double seconds_of(const Cursor& in) {
  const std::string text = in.name().value_or("0");
  const auto number = number_of(std::string_view(text).substr(0, text.find('.')), 4'000'000'000);
  return static_cast<double>(number.value_or(0));
}

/// The watchdog of NCCL, or of a server, ended this rank.
bool is_of_watchdog(const model::Fact& fact) {
  return fact.rank && (fact.kind == "watchdog-stuck" || fact.kind == "watchdog-timeout" ||
                       fact.kind == "watchdog-error" || fact.kind == model::kServerWatchdog);
}

/// NCCL's watchdog aborts every rank after a timeout or an error of NCCL or CUDA, and its monitor
/// aborts a rank with a stuck watchdog: the abort is an effect, and does not show which rank was
/// missing.
bool fell_by_watchdog(const model::Process& process, const model::JobModel& job) {
  return process.exit && process.exit->signal == SIGABRT &&
         (std::any_of(job.collectives.begin(), job.collectives.end(),
                      [&process](const auto& call) { return call.rank == process.rank; }) ||
          std::any_of(job.facts.begin(), job.facts.end(), [&process](const model::Fact& fact) {
            return fact.rank == process.rank && is_of_watchdog(fact);
          }));
}

/// "failed (exitcode: -9) local_rank: 3 (pid: 4242) of binary": for a log without the table. The
/// first such line counts; the other ranks are ended because of it.
std::optional<model::Process> failure_in_line(std::string_view log) {
  constexpr std::string_view kFailed = "failed (exitcode: ";
  const std::size_t at = log.find(kFailed);
  if (at == log.npos) {
    return std::nullopt;
  }
  std::string_view line = log.substr(at + kFailed.size());
  line = line.substr(0, line.find('\n'));
  std::string_view rank = line.substr(std::min(line.find("local_rank: "), line.size()));
  take_prefix(rank, "local_rank: ");
  const auto number = take_number(rank, kMaxRank);
  const model::Exit exit = exit_of(line);
  if (!number || !exit.signal) {
    return std::nullopt;
  }
  model::Process process = failed_rank();
  process.rank = static_cast<model::Rank>(*number);
  process.exit = exit;
  process.pid = pid_of(between(line, "(pid: ", ")").value_or("")).value_or(0);
  return process;
}

/// A faulthandler crash report without a rank belongs to the only rank that the launcher saw end by
/// this signal.
void name_crashed(const std::vector<model::Process>& ended, model::JobModel& job) {
  for (const model::Process& process : ended) {
    const auto same_signal = [&process](const model::Process& other) {
      return other.exit && process.exit && process.exit->signal &&
             other.exit->signal == process.exit->signal;
    };
    const auto nameless = [&](const model::Process& other) {
      return !other.rank && !other.threads.empty() && same_signal(other);
    };
    auto& seen = job.observations.back().processes;
    const auto crashed = std::find_if(seen.begin(), seen.end(), nameless);
    if (crashed != seen.end() && std::count_if(seen.begin(), seen.end(), nameless) == 1 &&
        std::count_if(ended.begin(), ended.end(), same_signal) == 1) {
      crashed->rank = process.rank;
      crashed->pid = process.pid;
      crashed->host = process.host;
    }
  }
}

}  // namespace

model::Process failed_rank() {
  model::Process process;
  process.ppid = -1;
  process.role = model::Role::kRank;
  process.state = 'X';
  return process;
}

void add_ended(std::vector<model::Process> ended, model::JobModel& job) {
  std::erase_if(ended,
                [&job](const model::Process& process) { return fell_by_watchdog(process, job); });
  if (ended.empty()) {
    return;
  }
  if (job.observations.empty()) {
    job.observations.emplace_back();
    job.ended = true;
  }
  name_crashed(ended, job);
  auto& processes = job.observations.back().processes;
  for (model::Process& process : ended) {
    const auto known =
        std::find_if(processes.begin(), processes.end(), [&process](const model::Process& other) {
          return other.role == model::Role::kRank && other.rank == process.rank;
        });
    if (known == processes.end()) {
      processes.push_back(std::move(process));
    } else if (!known->exit && !was_ended_while_waiting(*known)) {
      known->exit = process.exit;
    }
  }
}

std::vector<model::Rank> read_torchrun_text(std::string_view log, model::JobModel& job) {
  Failures failures = failures_in(log);
  if (failures.own.empty() && failures.ended.empty()) {
    if (auto process = failure_in_line(log)) {
      job.coverage.warnings.push_back(fmt::format(
          "the launcher's line names only local rank {0}: that is rank {0} on the first node alone",
          *process->rank));
      failures.own.push_back(std::move(*process));
    }
  }
  add_ended(std::move(failures.own), job);
  if (failures.first) {
    job.facts.push_back({.rank = failures.first, .pid = {}, .kind = "first-failure", .fields = {}});
  }
  return std::move(failures.ended);
}

void settle_watchdog_aborts(bool ranks_of_path, model::JobModel& job) {
  model::RankSet watched;
  for (const model::Fact& fact : job.facts) {
    watched = is_of_watchdog(fact) ? watched.united({*fact.rank}) : watched;
  }
  for (const model::CollectiveCall& call : job.collectives) {
    watched = call.state == model::CallState::kStarted ? watched.united({call.rank}) : watched;
  }
  if (watched.empty() || job.observations.empty()) {
    return;
  }
  for (model::Process& process : job.observations.back().processes) {
    const bool aborted =
        process.exit && process.exit->signal == SIGABRT && !process.threads.empty();
    if (aborted && ranks_of_path && process.rank && !watched.contains(*process.rank)) {
      process.rank.reset();  // the file has the output of several ranks
    }
    if (aborted && !process.rank && watched.size() == 1) {
      process.rank = watched.front();
    }
    if (!aborted || (process.rank && !watched.contains(*process.rank))) {
      continue;
    }
    if (!process.rank) {  // one of them, but which is unknown
      process.role = model::Role::kOther;
    }
    process.exit.reset();
    process.state = 'S';
    for (model::Thread& thread : process.threads) {
      thread.state = thread.state == 'X' ? 'S' : thread.state;
    }
  }
}

std::optional<model::Rank> sole_rank_of_agent(std::string_view log, model::JobModel& job) {
  constexpr std::string_view kRanks = "global_ranks=[";
  std::optional<std::string_view> ranks;
  for (std::size_t at = log.find(kRanks); at != log.npos; at = log.find(kRanks, at + 1)) {
    const std::string_view rest = log.substr(at + kRanks.size());
    const std::string_view one = rest.substr(0, rest.find_first_of("]\n"));
    if (ranks && *ranks != one) {
      return std::nullopt;
    }
    ranks = one;
  }
  const auto rank = ranks ? number_of(*ranks, kMaxRank) : std::nullopt;
  if (!rank) {
    return std::nullopt;
  }
  const std::size_t sizes = log.find("global_world_sizes=[");
  model::Fact fact{
      .rank = static_cast<model::Rank>(*rank), .pid = {}, .kind = "agent-ranks", .fields = {}};
  if (const auto world = sizes == log.npos
                             ? std::nullopt
                             : number_behind(log.substr(sizes), "global_world_sizes=[", kMaxRank)) {
    fact.fields["world"] = *world;
  }
  job.facts.push_back(std::move(fact));
  return static_cast<model::Rank>(*rank);
}

bool is_error_file(std::string_view head, std::string_view) {
  return base::trim(head).starts_with('{') &&
         (head.find("\"py_callstack\"") != std::string_view::npos ||
          (head.find("\"message\"") != std::string_view::npos &&
           head.find("\"extraInfo\"") != std::string_view::npos));
}

base::Result<model::JobModel> read_error_file(std::string_view bytes, const std::string& path) {
  const PlainDocument document = TRY(read_json(bytes, path));
  Complaint complaint{.file = path, .first = {}};
  const Cursor root(document, complaint);
  const Cursor outer = root["message"];
  const bool nested = outer.is(PlainValue::Kind::kDict);
  const Cursor about = nested ? outer : root;
  const Cursor message = about["message"];
  const Cursor extra = about["extraInfo"];
  const Cursor stack = extra["py_callstack"];
  const Cursor time = extra["timestamp"];
  std::string text = stack.text().value_or("");
  const std::string said = message.text().value_or("");
  if (text.empty()) {
    text = "Traceback (most recent call last):\n" + said;
  }
  const double seconds = seconds_of(time);
  if (complaint.first) {
    return tl::make_unexpected(*complaint.first);
  }
  model::JobModel job;
  const auto rank = rank_in_path(path, {});
  if (rank) {
    job.facts.push_back({.rank = rank, .pid = {}, .kind = "error-file", .fields = {}});
  }
  job.logs.push_back(
      {.rank = rank, .text = model::without_secrets((seconds > 0 ? moment(seconds) : "") + text)});
  job.coverage.observed.push_back(fmt::format("the error file {}", path));
  job.ended = true;
  return job;
}

}  // namespace ddpdoctor::imports

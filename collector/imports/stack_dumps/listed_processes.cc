// SPDX-License-Identifier: Apache-2.0
#include "collector/imports/stack_dumps/listed_processes.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/text.h"
#include "collector/imports/stack_dumps/dump_processes.h"
#include "collector/imports/stack_dumps/stack_text.h"
#include "collector/model/questions.h"

namespace ddpdoctor::imports {
namespace {

constexpr std::string_view kListed = "listed-process";  // a temporary fact

}  // namespace

void note_rows(const std::vector<ProcessRow>& rows, model::JobModel& job) {
  std::set<pid_t> noted;
  for (const ProcessRow& row : rows) {
    if (!noted.insert(row.pid).second) {
      continue;  // a table of threads, or a second table
    }
    std::vector<std::string> command = words_of(row.command);
    model::Fact fact{.rank = {}, .pid = row.pid, .kind = std::string(kListed), .fields = {}};
    fact.fields["command"] = std::move(command);
    fact.fields["state"] = std::string(1, row.state);
    fact.fields["wchan"] = row.wchan;
    if (row.ppid) {
      fact.fields["parent_pid"] = std::int64_t{*row.ppid};
    }
    job.facts.push_back(std::move(fact));
  }
}

namespace {

using Rows = std::map<pid_t, const model::Fact*>;

/// By pid; without those that two files tell differently.
Rows rows_of(const model::JobModel& job) {
  Rows rows;
  std::set<pid_t> unsure;
  for (const model::Fact& fact : job.facts) {
    if (fact.kind != kListed || !fact.pid) {
      continue;
    }
    const auto [at, fresh] = rows.try_emplace(*fact.pid, &fact);
    if (!fresh && (at->second->number("parent_pid") != fact.number("parent_pid") ||
                   at->second->list("command") != fact.list("command"))) {
      unsure.insert(*fact.pid);
    }
  }
  for (const pid_t pid : unsure) {
    rows.erase(pid);
  }
  return rows;
}

/// The whole command of parent and child is the same, and it is a program of Python: a shell forks
/// for every subshell.
bool is_fork_of(const model::Fact& child, const Rows& rows) {
  const auto parent = rows.find(static_cast<pid_t>(child.number("parent_pid").value_or(0)));
  const auto command = child.list("command");
  return parent != rows.end() && command.size() > 1 && command == parent->second->list("command") &&
         command.front().find("python") != std::string::npos;
}

void take_row(const model::Fact& row, model::Process& process) {
  const auto parent = row.number("parent_pid");
  process.ppid = parent && process.ppid < 0 ? static_cast<pid_t>(*parent) : process.ppid;
  const std::string state = row.text("state").value_or("?");
  const bool sleeps = state == "D" || state == "T" || state == "t";
  if (!process.threads.empty()) {
    model::Thread& main = process.threads.front();
    main.state = main.state == '?' && sleeps ? state.front() : main.state;
    main.wchan = main.wchan.empty() ? row.text("wchan").value_or("") : main.wchan;
  }
  if (process.command.empty()) {
    process.command = row.list("command");
    const bool nameless = process.role == model::Role::kRank && !process.rank;
    process.rank = nameless ? rank_in_command(process.command) : process.rank;
  }
}

bool is_in_state(const model::Fact& row, char state) {
  return row.text("state") == std::string(1, state);
}

/// A program in state D whose stack is unknown, the only one of its command; a rank with that
/// command was dumped.
std::vector<model::Fact> sleeping_ranks(const Rows& rows, const std::set<pid_t>& read,
                                        const std::set<pid_t>& ranks) {
  std::vector<model::Fact> out;
  for (const auto& [pid, row] : rows) {
    if (!is_in_state(*row, 'D') || read.contains(pid)) {
      continue;
    }
    std::int64_t others = 0;
    bool of_ranks = false;
    bool alone = true;
    for (const auto& [other, sibling] : rows) {
      if (other != pid && sibling->list("command") == row->list("command")) {
        ++others;
        of_ranks = of_ranks || ranks.contains(other);
        alone = alone && !is_in_state(*sibling, 'D');
      }
    }
    if (of_ranks && alone) {
      out.push_back(
          {.rank = {}, .pid = pid, .kind = "listed-sleeper", .fields = {{"others", others}}});
    }
  }
  return out;
}

}  // namespace

void take_rows(model::JobModel& job) {
  const Rows rows = rows_of(job);
  std::vector<model::Fact> forks;
  std::map<pid_t, int> dumped;  // containers may share a pid
  std::set<pid_t> read;         // with a stack
  std::set<pid_t> ranks;
  for (const model::Observation& observation : job.observations) {
    std::map<pid_t, int> here;
    for (const model::Process& process : observation.processes) {
      dumped[process.pid] = std::max(dumped[process.pid], ++here[process.pid]);
      const bool frames = shows_frames(process);
      if (frames) {
        read.insert(process.pid);
      }
      if (frames && process.role == model::Role::kRank) {
        ranks.insert(process.pid);
      }
    }
  }
  for (model::Observation& observation : job.observations) {
    for (model::Process& process : observation.processes) {
      const auto row = rows.find(process.pid);
      if (process.pid == 0 || row == rows.end() || !model::was_dumped(process) ||
          dumped[process.pid] != 1) {
        continue;
      }
      take_row(*row->second, process);
      const bool known = std::any_of(forks.begin(), forks.end(), [&](const model::Fact& fork) {
        return fork.pid == process.pid;
      });
      if (!known && is_fork_of(*row->second, rows)) {
        const auto parent =
            static_cast<std::int64_t>(row->second->number("parent_pid").value_or(0));
        forks.push_back(
            {.rank = {}, .pid = process.pid, .kind = "fork", .fields = {{"parent_pid", parent}}});
      }
    }
  }
  const auto sleepers = sleeping_ranks(rows, read, ranks);
  job.facts.insert(job.facts.end(), forks.begin(), forks.end());
  job.facts.insert(job.facts.end(), sleepers.begin(), sleepers.end());
}

namespace {

/// "python3" of "/usr/bin/python3 train.py" and of "[python3] <defunct>".
std::string_view program_of(const std::vector<std::string>& command) {
  std::string_view name = command.empty() ? std::string_view() : base::file_name(command.front());
  const bool bracketed = name.starts_with('[');
  name = name.substr(bracketed ? 1 : 0);
  return name.substr(0, name.find_first_of("]:"));
}

bool is_listed_python(const model::Fact& row) {
  return program_of(row.list("command")).starts_with("python");
}

/// The parent of a zombie: of its row, else the only living program of that name that is older.
std::optional<pid_t> parent_of_zombie(const model::Fact& zombie, const Rows& rows) {
  if (const auto parent = zombie.number("parent_pid")) {
    return static_cast<pid_t>(*parent);
  }
  std::optional<pid_t> parent;
  for (const auto& [pid, row] : rows) {
    if (pid < zombie.pid.value_or(0) && !is_in_state(*row, 'Z') &&
        program_of(row->list("command")) == program_of(zombie.list("command"))) {
      if (parent) {
        return std::nullopt;
      }
      parent = pid;
    }
  }
  return parent;
}

std::optional<model::Fact> fact_of_row(const model::Fact& row, const Rows& rows) {
  if (!is_listed_python(row)) {
    return std::nullopt;
  }
  model::Fact out{.rank = {}, .pid = row.pid, .kind = {}, .fields = {}};
  out.fields["command"] = row.list("command");
  if (is_in_state(row, 'T')) {
    out.kind = "listed-stopped";
    return out;
  }
  const auto parent = is_in_state(row, 'Z') ? parent_of_zombie(row, rows) : std::nullopt;
  const auto parent_row = parent ? rows.find(*parent) : rows.end();
  if (parent_row == rows.end() || !is_listed_python(*parent_row->second)) {
    return std::nullopt;  // a shell, or the first process of a container, collects late
  }
  out.kind = "listed-zombie";
  out.fields["parent_pid"] = std::int64_t{*parent};
  return out;
}

bool has_kernel_stack(const model::JobModel& job, pid_t pid) {
  return std::any_of(job.facts.begin(), job.facts.end(), [pid](const model::Fact& fact) {
    return fact.kind == "kernel-stack" && fact.pid == pid;
  });
}

}  // namespace

void note_states(model::JobModel& job) {
  const Rows rows = rows_of(job);
  std::vector<model::Fact> kept;
  for (const auto& [pid, row] : rows) {
    const std::string wchan = row->text("wchan").value_or("");
    const auto command = row->list("command");
    const bool of_kernel = !command.empty() && command.front().starts_with('[');
    if (is_in_state(*row, 'D') && !wchan.empty() && !of_kernel && !has_kernel_stack(job, pid)) {
      model::Fact sleep{.rank = {}, .pid = pid, .kind = "kernel-stack", .fields = {}};
      sleep.fields["functions"] = std::vector<std::string>{wchan};
      sleep.fields["modules"] = std::vector<std::string>{std::string()};
      sleep.fields["tid"] = std::int64_t{pid};
      sleep.fields["state"] = std::string("D");
      kept.push_back(std::move(sleep));
    }
    if (auto state = fact_of_row(*row, rows)) {
      kept.push_back(std::move(*state));
    }
  }
  job.facts.insert(job.facts.end(), kept.begin(), kept.end());
}

void give_states(model::JobModel& job) {
  const Rows rows = rows_of(job);
  for (model::Fact& fact : job.facts) {  // /proc/PID/stack does not show the state
    const auto row = fact.kind == "kernel-stack" ? rows.find(fact.pid.value_or(0)) : rows.end();
    if (row != rows.end() && is_in_state(*row->second, 'D')) {
      fact.fields.try_emplace("state", std::string("D"));
    }
  }
}

void forget_rows(model::JobModel& job) {
  std::erase_if(job.facts, [](const model::Fact& fact) { return fact.kind == kListed; });
}

std::map<pid_t, model::Rank> places_among_siblings(const model::JobModel& job) {
  std::map<std::pair<double, std::vector<std::string>>, std::vector<pid_t>> families;
  for (const auto& [pid, row] : rows_of(job)) {  // in the order of pids
    if (const auto parent = row->number("parent_pid")) {
      families[{*parent, row->list("command")}].push_back(pid);
    }
  }
  std::map<pid_t, model::Rank> out;
  for (const auto& [family, pids] : families) {
    for (std::size_t i = 0; pids.size() > 1 && i < pids.size(); ++i) {
      out[pids[i]] = static_cast<model::Rank>(i);
    }
  }
  return out;
}

}  // namespace ddpdoctor::imports

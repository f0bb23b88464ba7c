// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/told_kills.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"
#include "base/word.h"
#include "collector/detectors/evidence/ended_outside.h"
#include "collector/detectors/evidence/known_exceptions.h"
#include "collector/detectors/evidence/processes.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {
namespace {

constexpr std::string_view kKilled = "ut of memory: Killed process ";
constexpr std::size_t kMostKills = 64;
constexpr std::size_t kLongestToldLine = 200;
constexpr std::size_t kShortestName = 3;

struct Kill {
  pid_t pid = 0;
  std::string name;  // the kernel's: at most 15 characters of the title or the program
  std::string line;
  bool by_kernel = true;  // else a shell wrote it
};

std::string told_line(std::string_view line) {
  return base::elide(base::printable(base::trim(line)), kLongestToldLine);
}

/// 0 if the text is not a pid.
pid_t pid_in(std::string_view text) {
  pid_t pid = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), pid);
  return error == std::errc() && end == text.data() + text.size() ? std::max(pid, 0) : 0;
}

/// "oom-kill:constraint=CONSTRAINT_MEMCG,…,task=python,pid=4105,uid=0"; of the kubelet: "System OOM
/// encountered, victim process: python, pid: 4105".
std::optional<Kill> victim_in(std::string_view line) {
  constexpr std::array<std::array<std::string_view, 3>, 2> kForms = {
      {{"oom-kill:", ",task=", ",pid="},
       {"System OOM encountered", "victim process: ", ", pid: "}}};
  for (const auto& [begin, task, number] : kForms) {
    const std::size_t at = line.find(begin);
    const std::size_t name = at == line.npos ? at : line.find(task, at);
    const std::size_t pid = name == line.npos ? name : line.find(number, name);
    if (pid == line.npos) {
      continue;
    }
    const std::string_view rest = line.substr(pid + number.size());
    Kill kill{.pid = pid_in(rest.substr(0, rest.find_first_not_of("0123456789"))),
              .name = base::printable(line.substr(name + task.size(), pid - name - task.size())),
              .line = told_line(line)};
    return kill.pid > 0 ? std::optional(std::move(kill)) : std::nullopt;
  }
  return std::nullopt;
}

/// "Memory cgroup out of memory: Killed process 4105 (sglang::schedul) total-vm:…"; before Linux 5
/// "Out of memory: Kill process 4105 (python) score 912 or sacrifice child" and, alone, "Killed
/// process 4105 (python) total-vm:…".
std::optional<Kill> kill_in(std::string_view line) {
  std::string_view mark = kKilled;
  std::size_t at = line.find(mark);
  if (at == line.npos) {
    mark = "ut of memory: Kill process ";
    at = line.find(mark);
  }
  if (at == line.npos && line.find("total-vm:") != line.npos) {
    mark = "Killed process ";
    at = line.find(mark);
  }
  if (at == line.npos) {
    return victim_in(line);
  }
  const std::size_t open = at == line.npos ? at : line.find(" (", at);
  const std::size_t close = open == line.npos ? open : line.find(')', open);
  if (close == line.npos) {
    return std::nullopt;
  }
  const std::string_view number = line.substr(at + mark.size(), open - at - mark.size());
  const pid_t pid = pid_in(number);
  return pid > 0
             ? std::optional(Kill{.pid = pid,
                                  .name = base::printable(line.substr(open + 2, close - open - 2)),
                                  .line = told_line(line)})
             : std::nullopt;
}

/// "train.sh: line 17: 4210 Killed                  python -m torch.distributed.run train.py" of
/// bash: a program of Python.
std::optional<Kill> shell_kill_in(std::string_view line) {
  constexpr std::string_view kWord = " Killed ";
  const std::size_t at = line.find(kWord);
  const std::size_t colon = at == line.npos ? at : line.rfind(": ", at);
  if (colon == line.npos || line.substr(0, colon).rfind(": line ") == line.npos) {
    return std::nullopt;
  }
  const pid_t pid = pid_in(base::trim(line.substr(colon + 2, at - colon - 2)));
  const auto words = base::split(line.substr(at + kWord.size()), ' ');
  const bool of_python = std::any_of(words.begin(), words.end(), [](std::string_view word) {
    return word.ends_with(".py") || base::file_name(word).starts_with("python");
  });
  return pid > 0 && of_python
             ? std::optional(
                   Kill{.pid = pid, .name = "python", .line = told_line(line), .by_kernel = false})
             : std::nullopt;
}

std::vector<Kill> kills_in(const model::JobModel& job) {
  std::vector<Kill> out;
  for (const model::Log& log : job.logs) {
    for (const std::string_view line : base::split(log.text, '\n')) {
      auto kill = out.size() < kMostKills ? kill_in(line) : std::nullopt;
      kill = kill || out.size() >= kMostKills ? std::move(kill) : shell_kill_in(line);
      const bool told = kill && std::any_of(out.begin(), out.end(), [&kill](const Kill& other) {
                          return other.pid == kill->pid;
                        });
      if (kill && !told) {
        out.push_back(std::move(*kill));
      }
    }
  }
  return out;
}

/// "sglang" of "sglang::schedul".
std::string_view program_of(std::string_view name) {
  const auto end = std::find_if_not(name.begin(), name.end(), base::is_word);
  return name.substr(0, static_cast<std::size_t>(end - name.begin()));
}

/// A word of its own, in a line that the kernel did not write.
bool speaks_of(std::string_view text, std::string_view word) {
  for (std::size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    const std::size_t begin = text.rfind('\n', at) + 1;
    const std::string_view line = text.substr(begin, text.find('\n', at) - begin);
    if ((at == 0 || !base::is_word(text[at - 1])) &&
        (end == text.size() || !base::is_word(text[end])) && line.find("oom") == line.npos &&
        !kill_in(line)) {
      return true;
    }
  }
  return false;
}

bool is_of_job(const model::JobModel& job, const Kill& kill) {
  const std::string_view program = program_of(kill.name);
  const auto all = processes(job);
  return model::process(job, kill.pid) != nullptr || program.starts_with("python") ||
         program.starts_with("pt_") ||  // torch's names: pt_main_thread, pt_data_worker
         (program.size() >= kShortestName &&
          (std::any_of(all.begin(), all.end(),
                       [program](const model::Process* process) {
                         return std::any_of(
                             process->command.begin(), process->command.end(),
                             [program](const auto& part) { return speaks_of(part, program); });
                       }) ||
           std::any_of(job.logs.begin(), job.logs.end(),
                       [program](const model::Log& log) { return speaks_of(log.text, program); })));
}

/// "process 4105 (sglang::schedul)", "processes 4105 and 4106 (python)".
std::string killed_ones(const std::vector<Kill>& kills) {
  std::vector<pid_t> pids;
  for (const Kill& kill : kills) {
    pids.push_back(kill.pid);
  }
  return fmt::format("process{} {} ({})", kills.size() == 1 ? "" : "es", pids_said(pids),
                     kills.front().name);
}

}  // namespace

std::optional<Finding> told_kills(const graph::Examination& examination) {
  const model::JobModel& job = examination.job;
  std::vector<Kill> kills = kills_in(job);
  std::erase_if(kills, [&job](const Kill& kill) { return !is_of_job(job, kill); });
  if (kills.empty() || outlived(examination, std::nullopt)) {
    return std::nullopt;
  }
  Finding finding;
  finding.kind = "dead-rank";
  finding.confidence = Confidence::kLikely;
  for (const Kill& kill : kills) {
    const model::Process* process = model::process(job, kill.pid);
    if (process != nullptr && process->rank) {
      finding.culprits.insert(*process->rank);
    }
    finding.evidence.push_back(
        {.rank = process == nullptr ? std::nullopt : process->rank, .text = "log: " + kill.line});
  }
  finding.details["pid"] = static_cast<std::int64_t>(kills.front().pid);
  const bool by_kernel =
      std::any_of(kills.begin(), kills.end(), [](const Kill& kill) { return kill.by_kernel; });
  if (by_kernel) {  // the shell then reports the same kills
    std::erase_if(kills, [](const Kill& kill) { return !kill.by_kernel; });
  }
  const auto limit = by_kernel ? std::nullopt : told_memory_limit(job);
  if (limit) {
    finding.evidence.push_back({.rank = {}, .text = "log: " + limit->line});
  }
  finding.summary =
      limit       ? fmt::format("{} {} killed at {}", killed_ones(kills),
                          kills.size() == 1 ? "was" : "were", limit->whose)
      : by_kernel ? fmt::format("the kernel killed {} because memory ran out", killed_ones(kills))
                  : fmt::format("{} {} killed by SIGKILL (sender unknown)", killed_ones(kills),
                                kills.size() == 1 ? "was" : "were");
  finding.fix =
      limit ? limit->fix
      : by_kernel
          ? "Lower the memory of this process (batch, workers, prefetch, offloading), or give the "
            "node or its container more."
          : "Run `dmesg | grep -i kill` on that node: the out-of-memory killer or a person sent "
            "it.";
  return finding;
}

}  // namespace ddpdoctor::detectors

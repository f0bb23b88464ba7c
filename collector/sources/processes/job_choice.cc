// SPDX-License-Identifier: Apache-2.0
#include "collector/sources/processes/job_choice.h"

#include <algorithm>
#include <map>
#include <set>
#include <unistd.h>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"
#include "collector/sources/processes/candidates.h"
#include "collector/sources/processes/proc_file.h"

namespace ddpdoctor::sources {
namespace {

constexpr std::size_t kMostListed = 8;
constexpr std::size_t kLongestCommand = 60;

/// One job: its topmost processes and its ranks.
struct Job {
  std::set<pid_t> tops;
  // Ray workers: the processes that start them may also serve other programs.
  std::set<pid_t> workers;
  std::set<int> ranks;
  std::string text;  // job text of its ranks; empty = unknown
  bool launched = false;
  bool meant = false;  // selected by a filter's variable
};

class Chooser {
 public:
  Chooser(ProcessTable table, const HasTorch& has_torch)
      : candidates_(std::move(table)), has_torch_(has_torch) {}

  base::Result<JobChoice> choose(pid_t asked) {
    const ProcessRow* const row = candidates_.row(asked);
    if (row == nullptr || row->kernel_thread || row->state == 'Z' || asked == ::getpid()) {
      return JobChoice{.pid = asked, .note = {}};
    }
    if (const auto programs = programs_of_ray(asked); programs.size() > 1) {
      return base::failure(fmt::format("{} jobs run below pid {}", programs.size(), named(asked)),
                           "choose one of them: " + listed(programs));
    }
    if (belongs(asked)) {
      return JobChoice{.pid = asked, .note = {}};
    }
    const auto jobs = with_ranks_first(jobs_among(candidates_.subtree(asked)));
    if (jobs.empty() && !has_torch_(asked)) {
      return JobChoice{.pid = asked, .note = {}};
    }
    if (jobs.size() == 1) {
      return only_one(asked, jobs.begin()->second);
    }
    if (!jobs.empty() && starts_jobs(candidates_.program(asked)) && !share_a_rank(jobs)) {
      return JobChoice{.pid = asked, .note = {}};
    }
    if (jobs.empty()) {
      return base::failure(fmt::format("pid {} is not part of a PyTorch job", named(asked)),
                           where_jobs_are());
    }
    return base::failure(fmt::format("{} jobs run below pid {}", jobs.size(), named(asked)),
                         "choose one of them: " + listed(jobs));
  }

  [[nodiscard]] const ProcessTable& processes() const {
    return candidates_.table();
  }

  std::vector<JobHere> here(const JobFilter& filter) {
    std::vector<pid_t> all;
    for (const auto& [pid, row] : candidates_.table()) {
      const bool ours = !filter.except.empty() && std::find(row.command.begin(), row.command.end(),
                                                            filter.except) != row.command.end();
      if (!ours && pid != ::getpid()) {
        all.push_back(pid);
      }
    }
    auto jobs = jobs_among(all, filter.variable);
    std::erase_if(jobs, [&](const auto& job) { return !is_meant(job.second, filter); });
    jobs = with_ranks_first(std::move(jobs));
    const auto launched = [](const auto& job) { return job.second.launched; };
    if (std::any_of(jobs.begin(), jobs.end(), launched)) {
      std::erase_if(
          jobs, [](const auto& job) { return !job.second.launched && job.second.ranks.empty(); });
    }
    std::vector<JobHere> out;
    for (const auto& [key, job] : jobs) {
      const pid_t top = first_of(job);
      out.push_back(
          {.pid = top, .text = job.text, .command = command_of(top), .ranks = job.ranks.size()});
    }
    return out;
  }

 private:
  bool is_meant(const Job& job, const JobFilter& filter) const {
    const auto speaks_of_it = [&](pid_t top) {
      const ProcessRow* row = candidates_.row(top);
      return row != nullptr &&
             fmt::format("{}", fmt::join(row->command, " ")).find(filter.text) != std::string::npos;
    };
    const bool text = filter.text.empty() || job.text.find(filter.text) != std::string::npos ||
                      std::any_of(job.tops.begin(), job.tops.end(), speaks_of_it);
    return text && (filter.variable.empty() || job.meant);
  }

  /// The programs that use the workers of a raylet.
  std::map<std::string, Job> programs_of_ray(pid_t raylet) {
    const auto& below = candidates_.children(raylet);
    const bool starts = std::any_of(below.begin(), below.end(), [this, raylet](pid_t child) {
      return candidates_.claim(child).raylet == raylet;
    });
    auto jobs = starts ? jobs_among(below) : std::map<std::string, Job>();
    std::erase_if(jobs, [](const auto& job) { return job.second.workers.empty(); });
    return jobs;
  }

  static pid_t first_of(const Job& job) {
    return job.workers.empty() ? *job.tops.begin() : *job.workers.begin();
  }

  bool has_variable(pid_t pid, const std::string& variable) {
    const std::size_t sign = variable.find('=');
    if (sign == std::string::npos) {
      return false;
    }
    const auto& environment = candidates_.completed(pid).environment;
    const auto found = environment.find(variable.substr(0, sign));
    return found != environment.end() && found->second == variable.substr(sign + 1);
  }

  /// Belongs to a job itself, or is below a process that does.
  bool belongs(pid_t pid) {
    const Program program = candidates_.program(pid);
    return is_machinery(program) || runs_python(program) || claims_rank(pid) ||
           top_of_job(candidates_, pid) != pid || has_torch_(pid).value_or(false);
  }

  static bool is_machinery(Program program) {
    return program == Program::kLauncher || program == Program::kForkServer ||
           program == Program::kResourceTracker || program == Program::kCompileWorker ||
           program == Program::kShmManager;
  }

  /// Batch systems and MPI also label the shells and launchers around a rank.
  bool claims_rank(pid_t pid) {
    const RankClaim& claim = candidates_.claim(pid);
    const Program program = candidates_.program(pid);
    return claim.rank && (!claim.weak || program == Program::kOther || runs_python(program));
  }

  /// A rank, a launcher, or a process that uses torch. Other Python programs do not count.
  bool is_member(pid_t pid) {
    const Program program = candidates_.program(pid);
    return program == Program::kLauncher || claims_rank(pid) ||
           ((runs_python(program) || program == Program::kOther || program == Program::kBoundary) &&
            has_torch_(pid).value_or(false));
  }

  std::map<std::string, Job> jobs_among(const std::vector<pid_t>& pids,
                                        const std::string& variable = {}) {
    std::map<std::string, Job> jobs;
    for (const pid_t pid : pids) {
      const ProcessRow* row = candidates_.row(pid);
      if (row == nullptr || row->state == 'Z' || row->kernel_thread || !is_member(pid)) {
        continue;
      }
      const pid_t top = top_of_job(candidates_, pid);
      const std::string ray = candidates_.claim(pid).ray;
      const std::string text = ray.empty() ? candidates_.job_below(top) : ray;
      Job& job = jobs[text.empty() ? fmt::format("pid {}", top) : text];
      job.tops.insert(top);
      if (!ray.empty()) {
        job.workers.insert(pid);
      }
      job.text = text;
      job.launched = job.launched || candidates_.program(pid) == Program::kLauncher;
      job.meant = job.meant || has_variable(pid, variable);
      if (claims_rank(pid)) {  // a batch script's launcher has a rank's labels, too
        job.ranks.insert(*candidates_.claim(pid).rank);
      }
    }
    const auto starts_workers = [&jobs](const auto& one) {
      return one.second.workers.empty() &&
             std::any_of(jobs.begin(), jobs.end(), [&one](const auto& other) {
               return !other.second.workers.empty() && other.second.tops == one.second.tops;
             });
    };
    std::set<std::string> programs;  // programs that started the cluster of their workers
    for (const auto& one : jobs) {
      if (starts_workers(one)) {
        programs.insert(one.first);
      }
    }
    std::erase_if(jobs, [&programs](const auto& one) { return programs.contains(one.first); });
    return jobs;
  }

  /// Programs beside ranks (MPI's daemon, a server) are not jobs of their own.
  static std::map<std::string, Job> with_ranks_first(std::map<std::string, Job> jobs) {
    const auto has_ranks = [](const auto& job) { return !job.second.ranks.empty(); };
    if (std::any_of(jobs.begin(), jobs.end(), has_ranks)) {
      std::erase_if(jobs, [&has_ranks](const auto& job) { return !has_ranks(job); });
    }
    return jobs;
  }

  /// Two processes with the same rank belong to two jobs; otherwise a script may have started one
  /// job in parts.
  static bool share_a_rank(const std::map<std::string, Job>& jobs) {
    std::set<int> seen;
    for (const auto& [text, job] : jobs) {
      for (const int rank : job.ranks) {
        if (!seen.insert(rank).second) {
          return true;
        }
      }
    }
    return false;
  }

  static bool starts_jobs(Program program) {
    return program == Program::kShell || program == Program::kWrapper;
  }

  /// A script's shell that started the job counts as its launcher; a terminal, init or a test
  /// runner has other processes below it, too.
  JobChoice only_one(pid_t asked, const Job& job) {
    const pid_t top = first_of(job);
    const Program program = candidates_.program(asked);
    const bool leads =
        starts_jobs(program) || (program == Program::kInteractive && job.tops.size() > 1);
    if (leads || job.tops.contains(asked)) {
      return {.pid = asked, .note = {}};
    }
    return {.pid = top,
            .note = fmt::format("pid {} is not of the job; below it runs one: pid {}", named(asked),
                                named(top))};
  }

  std::string where_jobs_are() {
    std::vector<pid_t> all;
    for (const auto& [pid, row] : candidates_.table()) {
      all.push_back(pid);
    }
    const auto jobs = jobs_among(all);
    return jobs.empty() ? "no PyTorch job was found on this machine; `ps -ef | grep python` lists "
                          "what runs, and `ddpdoctor attach PID --no-tree` shows the threads of "
                          "any process"
                        : "on this machine: " + listed(jobs);
  }

  std::string listed(const std::map<std::string, Job>& jobs) {
    std::vector<std::string> out;
    for (const auto& [text, job] : jobs) {
      if (out.size() == kMostListed) {
        out.push_back(fmt::format("{} more", jobs.size() - kMostListed));
        break;
      }
      const std::string ranks = job.ranks.empty() ? ""
                                                  : fmt::format(", {} rank{}", job.ranks.size(),
                                                                job.ranks.size() == 1 ? "" : "s");
      out.push_back(fmt::format("`ddpdoctor attach {}` ({}{})", first_of(job),
                                command_of(first_of(job)), ranks));
    }
    return fmt::format("{}", fmt::join(out, "; "));
  }

  /// Files without their folders: the end of a command distinguishes two jobs.
  std::string command_of(pid_t pid) const {
    const ProcessRow* row = candidates_.row(pid);
    if (row == nullptr || row->command.empty()) {
      return row == nullptr ? std::string()
                            : base::elide(base::printable(row->comm), kLongestCommand);
    }
    std::string words;
    for (const std::string& word : row->command) {
      const std::size_t folder = word.starts_with('/') ? word.rfind('/') + 1 : 0;
      words += (words.empty() ? "" : " ") + word.substr(folder < word.size() ? folder : 0);
    }
    return base::elide(base::printable(words), kLongestCommand);
  }

  std::string named(pid_t pid) const {
    return fmt::format("{} ({})", pid, command_of(pid));
  }

  Candidates candidates_;
  const HasTorch& has_torch_;
};

std::optional<bool> maps_torch(pid_t pid) {
  const auto maps = read_file(proc_path(pid, "maps"), kLargeFile);
  if (!maps) {
    return std::nullopt;
  }
  return maps->find("/libtorch") != std::string::npos;
}

}  // namespace

base::Result<JobChoice> choose_job(pid_t asked) {
  return choose_job(asked, read_process_table(), maps_torch);
}

base::Result<JobChoice> choose_job(pid_t asked, ProcessTable table, const HasTorch& has_torch) {
  Chooser chooser(std::move(table), has_torch);
  JobChoice choice = TRY(chooser.choose(asked));
  choice.processes = chooser.processes();
  return choice;
}

std::vector<JobHere> jobs_here(const JobFilter& filter) {
  return jobs_here(filter, read_process_table(), maps_torch);
}

std::vector<JobHere> jobs_here(const JobFilter& filter, ProcessTable table,
                               const HasTorch& has_torch) {
  return Chooser(std::move(table), has_torch).here(filter);
}

}  // namespace ddpdoctor::sources

// SPDX-License-Identifier: Apache-2.0
// find_job: climbs to the top, takes everything below, and searches elsewhere only for missing
// ranks (orphans of a dead launcher, ranks started by hand, a second "node" on this machine).
#include <algorithm>
#include <map>
#include <set>
#include <unistd.h>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/sources/processes/access.h"
#include "collector/sources/processes/candidates.h"
#include "collector/sources/processes/proc_file.h"

namespace ddpdoctor::sources {

namespace {

/// World, local and node counts according to most ranks, and the ranks that this machine should
/// run.
struct Expectation {
  std::optional<int> world_size;
  std::optional<int> local_world_size;
  std::optional<int> nodes;
  std::vector<int> ranks_here;
};

constexpr int kLargestWorld = 1 << 20;  // limits what a hostile environment can make us allocate

Expectation expectation(Candidates& candidates, const std::vector<JobProcess>& processes) {
  Expectation found;
  std::map<int, int> world_votes;
  std::set<int> here;
  for (const JobProcess& process : processes) {
    const RankClaim& claim = candidates.claim(process.row.pid);
    const bool counts =
        process.role == JobRole::kRank || process.role == JobRole::kDataLoaderWorker;
    if (!counts || !claim.rank || !claim.world_size || *claim.world_size > kLargestWorld) {
      continue;
    }
    // Workers of mp.spawn's ranks inherit what these set in os.environ.
    ++world_votes[*claim.world_size];
    found.nodes = claim.nodes ? claim.nodes : found.nodes;
    if (claim.local_world_size && claim.local_rank &&
        *claim.local_world_size <= *claim.world_size) {
      found.local_world_size = claim.local_world_size;
      const int first = *claim.rank - *claim.local_rank;
      for (int rank = std::max(first, 0);
           rank < std::min(first + *claim.local_world_size, *claim.world_size); ++rank) {
        here.insert(rank);
      }
    }
  }
  const auto most =
      std::max_element(world_votes.begin(), world_votes.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most != world_votes.end()) {
    found.world_size = most->first;
  }
  if (here.empty() && found.world_size && found.nodes.value_or(1) == 1) {
    for (int rank = 0; rank < *found.world_size; ++rank) {
      here.insert(rank);
    }
  }
  found.ranks_here.assign(here.begin(), here.end());
  return found;
}

std::set<int> ranks_of(const std::vector<JobProcess>& processes) {
  std::set<int> ranks;
  for (const JobProcess& process : processes) {
    if (process.role == JobRole::kRank && process.rank) {
      ranks.insert(*process.rank);
    }
  }
  return ranks;
}

class Search {
 public:
  Search(ProcessTable table, pid_t pid) : candidates_(std::move(table)), named_(pid) {}

  JobTree whole_tree() {
    const pid_t top = top_of_job(candidates_, named_);
    job_ = candidates_.job_below(top == named_ ? named_ : top);
    if (top != named_) {
      const std::string own = candidates_.job_below(named_);
      job_ = own.empty() ? job_ : own;
      ray_ = candidates_.claim(named_).ray;
    }
    add_subtree(top);
    processes_ = assign_roles(candidates_, members_);
    add_ranks_elsewhere();
    return finish(top);
  }

  JobTree one_process() {
    members_ = {named_};
    processes_ = assign_roles(candidates_, members_);
    return finish(named_);
  }

 private:
  void add_subtree(pid_t root) {
    // A shell that the user did not name may have other jobs below it: these are skipped.
    std::set<pid_t> skipped;
    for (const pid_t pid : candidates_.subtree(root)) {
      const ProcessRow& row = *candidates_.row(pid);
      const std::string& ray = candidates_.claim(pid).ray;
      const bool below_skipped =
          skipped.contains(row.ppid) || (!ray_.empty() && !ray.empty() && ray != ray_);
      const bool together = !ray.empty() && ray == ray_;  // groups of one program work together
      const std::string job = root == named_ || job_.empty() || pid == root
                                  ? std::string()
                                  : candidates_.job_below(pid);
      if (below_skipped || (!together && !job.empty() && job != job_)) {
        skipped.insert(pid);
      } else if (known_.insert(pid).second) {
        members_.push_back(pid);
      }
    }
  }

  /// Adds ranks of the same job that are in none of the trees.
  void add_ranks_elsewhere() {
    const Expectation expected = expectation(candidates_, processes_);
    const std::set<int> have = ranks_of(processes_);
    const bool complete =
        expected.world_size && have.size() >= static_cast<std::size_t>(*expected.world_size);
    const bool complete_here = expected.nodes.value_or(1) > 1 && !expected.ranks_here.empty() &&
                               std::includes(have.begin(), have.end(), expected.ranks_here.begin(),
                                             expected.ranks_here.end());
    if (job_.empty() || !expected.world_size || complete || complete_here) {
      return;
    }
    const auto network = read_link(proc_path(named_, "ns/net"));
    const pid_t session = candidates_.row(named_)->session;
    bool added = false;
    for (const auto& [pid, row] : candidates_.table()) {
      if (known_.contains(pid) || row.state == 'Z' || row.kernel_thread || pid == ::getpid() ||
          !may_be_rank(pid)) {
        continue;
      }
      const RankClaim claim = candidates_.claim(pid);
      if (!claim.rank || claim.job != job_ || read_link(proc_path(pid, "ns/net")) != network) {
        continue;
      }
      if (have.contains(*claim.rank) && row.session != session) {
        notes_.push_back(
            fmt::format("pid {} also has RANK={} of this job (same MASTER_PORT and WORLD_SIZE) but "
                        "belongs to another session: a leftover of an earlier start?",
                        pid, *claim.rank));
        continue;
      }
      add_subtree(top_of_job(candidates_, pid));
      added = true;
    }
    if (added) {
      processes_ = assign_roles(candidates_, members_);
    }
  }

  bool may_be_rank(pid_t pid) {
    const Program program = candidates_.program(pid);
    return runs_python(program) || program == Program::kOther || program == Program::kShmManager;
  }

  JobTree finish(pid_t top) {
    const Expectation expected = expectation(candidates_, processes_);
    note_other_jobs();
    note_other_machines(expected);
    const auto launcher =
        std::find_if(processes_.begin(), processes_.end(),
                     [](const JobProcess& process) { return process.role == JobRole::kLauncher; });
    const bool leads = candidates_.program(top) == Program::kShell ||
                       candidates_.program(top) == Program::kInteractive;
    const pid_t above_all = leads ? top : 0;
    JobTree job;
    job.named = named_;
    job.launcher = launcher == processes_.end() ? above_all : launcher->row.pid;
    job.processes = std::move(processes_);
    job.world_size = expected.world_size;
    job.notes = std::move(notes_);
    job.local_world_size = expected.local_world_size;
    job.nodes = expected.nodes;
    job.ranks_here = expected.ranks_here;
    return job;
  }

  void note_other_jobs() {
    std::map<std::string, std::set<int>> jobs;
    for (const JobProcess& process : processes_) {
      const RankClaim& claim = candidates_.claim(process.row.pid);
      if (process.role == JobRole::kRank && claim.rank && !claim.job.empty()) {
        jobs[claim.job].insert(*claim.rank);
      }
    }
    if (jobs.size() < 2) {
      return;
    }
    std::string list;
    for (const auto& [job, ranks] : jobs) {
      const std::string name = job.ends_with(", ") ? job.substr(0, job.size() - 2) : job;
      list += fmt::format("{}{} rank{} at {}", list.empty() ? "" : "; ", ranks.size(),
                          ranks.size() == 1 ? "" : "s", base::elide(base::printable(name), 60));
    }
    notes_.push_back(fmt::format(
        "{} jobs run below pid {}: {}; attach to a process of one of them to see it alone",
        jobs.size(), named_, list));
  }

  void note_other_machines(const Expectation& expected) {
    if (members_.size() == 1 && members_.front() == named_) {
      return;
    }
    if (expected.world_size && expected.nodes.value_or(1) > 1 &&
        expected.ranks_here.size() < static_cast<std::size_t>(*expected.world_size)) {
      notes_.push_back(
          fmt::format("{} of {}{}{}); the others are on other machines and were not observed",
                      expected.ranks_here.size(), *expected.world_size, kRanksHere,
                      base::ranges(expected.ranks_here)));
    }
  }

  Candidates candidates_;
  pid_t named_;
  std::string job_;
  std::string ray_;  // the Ray program that the named worker serves
  std::vector<pid_t> members_;
  std::set<pid_t> known_;
  std::vector<JobProcess> processes_;
  std::vector<std::string> notes_;
};

}  // namespace

base::Result<JobTree> find_job(pid_t pid, bool whole_tree) {
  return find_job(pid, whole_tree, read_process_table());
}

base::Result<JobTree> find_job(pid_t pid, bool whole_tree, ProcessTable table) {
  std::string note;
  if (!table.contains(pid)) {
    const auto owner = process_of_thread(pid);
    if (!owner || !table.contains(*owner)) {
      return tl::unexpected<base::Error>(why_unreadable(pid));
    }
    note = fmt::format("{} is a thread of process {}", pid, *owner);
    pid = *owner;
  }
  if (pid == ::getpid()) {
    return base::failure(
        fmt::format("process {} is ddpdoctor itself", pid),
        "name a process of the job: its launcher, a rank, a worker or the shell that started it");
  }
  if (table.at(pid).kernel_thread) {
    return tl::unexpected<base::Error>(why_unreadable(pid));
  }
  Search search(std::move(table), pid);
  JobTree job = whole_tree ? search.whole_tree() : search.one_process();
  if (!note.empty()) {
    job.notes.insert(job.notes.begin(), note);
  }
  return job;
}

}  // namespace ddpdoctor::sources

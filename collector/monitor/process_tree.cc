// SPDX-License-Identifier: Apache-2.0
#include "collector/monitor/process_tree.h"

#include <csignal>
#include <map>
#include <set>
#include <thread>
#include <unistd.h>

#include <sys/wait.h>

#include "collector/sources/processes/process_table.h"

namespace ddpdoctor::monitor {
namespace {

constexpr std::chrono::milliseconds kTreeLook{50};
constexpr int kHardTries = 40;

std::set<pid_t>& left_out() {
  static std::set<pid_t> pids;
  return pids;
}

void reap() {
  while (::waitpid(-1, nullptr, WNOHANG) > 0) {
  }
}

void signal_all(const std::vector<pid_t>& pids, int number) {
  for (const pid_t pid : pids) {
    ::kill(pid, number);
  }
}

}  // namespace

void leave_out(pid_t pid) {
  left_out().insert(pid);
}

bool is_left_out(pid_t pid) {
  return left_out().contains(pid);
}

std::vector<pid_t> descendants(pid_t root) {
  std::multimap<pid_t, pid_t> children;
  for (const auto& [pid, row] : sources::read_process_table()) {
    if (row.state != 'Z' && row.state != 'X' && !is_left_out(pid)) {
      children.emplace(row.ppid, pid);
    }
  }
  std::vector<pid_t> found{root};
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto [first, last] = children.equal_range(found[i]);
    for (auto child = first; child != last; ++child) {
      found.push_back(child->second);
    }
  }
  found.erase(found.begin());
  return found;
}

void end_descendants(std::chrono::milliseconds grace) {
  const pid_t self = ::getpid();
  std::vector<pid_t> left = descendants(self);
  signal_all(left, SIGTERM);
  signal_all(left, SIGCONT);  // a stopped process cannot end
  const auto deadline = std::chrono::steady_clock::now() + grace;
  while (!left.empty() && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(kTreeLook);
    reap();
    left = descendants(self);
  }
  for (int i = 0; i < kHardTries && !left.empty(); ++i) {
    signal_all(left, SIGKILL);
    std::this_thread::sleep_for(kTreeLook);
    reap();
    left = descendants(self);
  }
}

}  // namespace ddpdoctor::monitor

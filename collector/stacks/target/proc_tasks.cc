// SPDX-License-Identifier: Apache-2.0
#include "collector/stacks/target/proc_tasks.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <dirent.h>
#include <fcntl.h>
#include <map>
#include <memory>
#include <mutex>
#include <system_error>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/stacks/target/proc_file.h"

namespace ddpdoctor::stacks {

namespace {

template <typename T>
std::optional<T> number(std::string_view word, int radix = 10) {
  if (radix == 16 && word.starts_with("0x")) {
    word.remove_prefix(2);
  }
  T value{};
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value, radix);
  return error == std::errc{} && !word.empty() && end == word.data() + word.size()
             ? std::optional(value)
             : std::nullopt;
}

std::string_view last_word(std::string_view text) {
  const std::size_t blank = text.find_last_of(" \t");
  return blank == std::string_view::npos ? text : text.substr(blank + 1);
}

/// The runs that our stops caused, by thread.
class OurRuns {
 public:
  void add(pid_t tid, std::uint64_t runs) {
    const std::scoped_lock lock(mutex_);
    by_tid_[tid] += runs;
  }
  std::uint64_t of(pid_t tid) {
    const std::scoped_lock lock(mutex_);
    const auto found = by_tid_.find(tid);
    return found == by_tid_.end() ? 0 : found->second;
  }

 private:
  std::mutex mutex_;
  std::map<pid_t, std::uint64_t> by_tid_;
};

OurRuns& our_runs() {
  static OurRuns all;
  return all;
}

}  // namespace

std::optional<BlockedState> parse_blocked(std::string_view text) {
  BlockedState state;
  const std::string_view first = next_word(text);
  if (first == "running") {
    state.running = true;
    return state;
  }
  const auto call = number<std::int64_t>(first);
  if (!call) {
    return std::nullopt;
  }
  if (*call >= 0) {
    Syscall syscall{.number = *call, .arguments = {}};
    for (std::size_t i = 0; i < kSyscallArguments.size(); ++i) {
      const auto value = number<std::uint64_t>(next_word(text), 16);
      if (!value) {
        return std::nullopt;
      }
      syscall.arguments.at(i) = *value;
      state.registers.set(kSyscallArguments.at(i), *value);
    }
    state.syscall = syscall;
  }
  const auto stack_pointer = number<std::uint64_t>(next_word(text), 16);
  const auto pc = number<std::uint64_t>(next_word(text), 16);
  if (!stack_pointer || !pc) {
    return std::nullopt;
  }
  state.registers.set(kStackPointer, *stack_pointer);
  state.registers.set(kProgramCounter, *pc);
  return state;
}

std::optional<ThreadName> parse_stat(std::string_view text) {
  const std::size_t open = text.find('(');
  const std::size_t close = text.rfind(')');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open ||
      close + 2 >= text.size()) {
    return std::nullopt;
  }
  return ThreadName{.name = base::printable(text.substr(open + 1, close - open - 1)),
                    .state = text[close + 2]};
}

base::Result<ProcTasks> ProcTasks::open(pid_t pid) {
  const std::string path = fmt::format("/proc/{}/task", pid);
  base::UniqueFd folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder) {
    return base::failure(errno == ENOENT ? fmt::format("there is no process {}", pid)
                                         : path + ": " + std::generic_category().message(errno));
  }
  ProcTasks tasks(pid, std::move(folder));
  // One column: the process is in our own pid namespace, so inner tids equal outer ones.
  if (const auto status = tasks.read(pid, "status")) {
    const auto columns = status_field(*status, "NSpid");
    tasks.namespaced_ = columns && columns->find_first_of(" \t") != std::string_view::npos;
  }
  return tasks;
}

std::vector<pid_t> ProcTasks::tids() const {
  std::vector<pid_t> found;
  const int copy = ::openat(folder_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(copy >= 0 ? ::fdopendir(copy) : nullptr,
                                                   &::closedir);
  if (!folder) {
    return found;
  }
  // NOLINTNEXTLINE(concurrency-mt-unsafe): this stream belongs to one thread
  while (const dirent* entry = ::readdir(folder.get())) {
    if (const auto tid = number<pid_t>(std::string_view(entry->d_name))) {
      found.push_back(*tid);
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

base::Result<std::string> ProcTasks::read(pid_t tid, const char* file) const {
  return read_proc_file(folder_.get(), fmt::format("{}/{}", tid, file));
}

std::optional<ThreadName> ProcTasks::name(pid_t tid) const {
  const auto text = read(tid, "stat");
  return text ? parse_stat(*text) : std::nullopt;
}

std::string ProcTasks::wchan(pid_t tid) const {
  const auto text = read(tid, "wchan");
  return text && *text != "0" ? base::printable(base::trim(*text)) : std::string{};
}

void ProcTasks::leave_out_runs(pid_t tid, std::uint64_t runs) {
  our_runs().add(tid, runs);
}

std::optional<std::uint64_t> ProcTasks::run_count(pid_t tid) const {
  const auto all = read_run_count(tid);
  const std::uint64_t ours = our_runs().of(tid);
  return all && *all >= ours ? std::optional(*all - ours) : all;
}

std::optional<std::uint64_t> ProcTasks::read_run_count(pid_t tid) const {
  if (const auto text = read(tid, "schedstat")) {
    std::string_view rest = *text;
    next_word(rest);
    next_word(rest);
    const auto count = number<std::uint64_t>(next_word(rest));
    if (count && *count > 0) {
      return count;
    }
  }
  // A kernel without CONFIG_SCHED_INFO writes zeros; context switches count the same.
  const auto status = read(tid, "status");
  if (!status) {
    return std::nullopt;
  }
  const auto voluntary = status_field(*status, "voluntary_ctxt_switches");
  const auto forced = status_field(*status, "nonvoluntary_ctxt_switches");
  if (!voluntary || !forced) {
    return std::nullopt;
  }
  const auto first = number<std::uint64_t>(*voluntary);
  const auto second = number<std::uint64_t>(*forced);
  return first && second ? std::optional(*first + *second) : std::nullopt;
}

base::Result<BlockedState> ProcTasks::blocked(pid_t tid) const {
  const std::string text = TRY(read(tid, "syscall"));
  auto state = parse_blocked(text);
  if (!state) {
    return base::failure(fmt::format("/proc/{}/task/{}/syscall says {}", pid_, tid,
                                     base::printable(base::trim(text))));
  }
  return *state;
}

pid_t ProcTasks::inner_tid(pid_t tid) const {
  if (!namespaced_) {
    return tid;
  }
  const auto status = read(tid, "status");
  const auto columns = status ? status_field(*status, "NSpid") : std::nullopt;
  return columns ? number<pid_t>(last_word(*columns)).value_or(tid) : tid;
}

pid_t ProcTasks::tracer(pid_t tid) const {
  const auto status = read(tid, "status");
  const auto tracer = status ? status_field(*status, "TracerPid") : std::nullopt;
  return tracer ? number<pid_t>(*tracer).value_or(0) : 0;
}

}  // namespace ddpdoctor::stacks

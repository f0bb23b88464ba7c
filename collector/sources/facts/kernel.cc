// SPDX-License-Identifier: Apache-2.0
// What the kernel recorded: memory limits and kills in the job's control groups, and log lines
// about the job.
#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <fcntl.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/text.h"
#include "base/unique_fd.h"
#include "collector/sources/facts/fact_sources.h"
#include "collector/sources/processes/proc_file.h"

namespace ddpdoctor::sources {

namespace {

/// The folder of a memory controller and its version.
struct MemoryGroup {
  std::string path;    // path in /proc/PID/cgroup
  std::string folder;  // below /sys/fs/cgroup
  int version = 2;
};

// "4:memory:/a/b" (version 1) or "0::/a/b" (version 2)
std::optional<MemoryGroup> memory_group(pid_t pid) {
  std::optional<MemoryGroup> found;
  const std::string text = read_file(proc_path(pid, "cgroup")).value_or("");
  for (const std::string_view line : base::split(text, '\n')) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos) {
      continue;
    }
    const auto controllers = base::split(line.substr(first + 1, second - first - 1), ',');
    const std::string path(line.substr(second + 1));
    if (std::find(controllers.begin(), controllers.end(), "memory") != controllers.end()) {
      return MemoryGroup{.path = path, .folder = "/sys/fs/cgroup/memory" + path, .version = 1};
    }
    if (line.starts_with("0::")) {
      found = MemoryGroup{.path = path, .folder = "/sys/fs/cgroup" + path, .version = 2};
    }
  }
  return found;
}

std::optional<std::int64_t> file_number(const std::string& path) {
  const auto text = read_file(path);
  return text ? number<std::int64_t>(base::trim(*text)) : std::nullopt;
}

/// The value after "name " in a file of such lines.
std::optional<std::int64_t> keyed_number(const std::string& path, std::string_view name) {
  const std::string text = read_file(path).value_or("");
  for (const std::string_view line : base::split(text, '\n')) {
    const auto fields = words(line);
    if (fields.size() == 2 && fields[0] == name) {
      return number<std::int64_t>(fields[1]);
    }
  }
  return std::nullopt;
}

void set_number(RawFact& fact, const char* field, std::optional<std::int64_t> value) {
  constexpr std::int64_t kUnlimited = std::int64_t{1}
                                      << 60;  // version 1 writes "no limit" as a huge number
  if (value && *value < kUnlimited) {
    fact.fields[field] = *value;
  }
}

void add_memory(const JobProcess& process, const MemoryGroup& group, Facts& facts) {
  RawFact fact = fact_about(process, "memory");
  fact.rank.reset();
  const bool second = group.version == 2;
  const auto kills =
      keyed_number(group.folder + (second ? "/memory.events" : "/memory.oom_control"), "oom_kill");
  if (!kills) {
    return;
  }
  fact.fields["cgroup"] = group.path;
  fact.fields["version"] = std::int64_t{group.version};
  fact.fields["oom_kills"] = *kills;
  set_number(fact, "limit_bytes",
             file_number(group.folder + (second ? "/memory.max" : "/memory.limit_in_bytes")));
  set_number(fact, "usage_bytes",
             file_number(group.folder + (second ? "/memory.current" : "/memory.usage_in_bytes")));
  set_number(fact, "peak_bytes",
             file_number(group.folder + (second ? "/memory.peak" : "/memory.max_usage_in_bytes")));
  // Cache of inactive files: the kernel reclaims it before it kills a process.
  set_number(fact, "reclaimable_bytes",
             keyed_number(group.folder + "/memory.stat",
                          second ? "inactive_file" : "total_inactive_file"));
  facts.push_back(std::move(fact));
}

double boot_epoch() {
  timespec wall{};
  timespec boot{};
  ::clock_gettime(CLOCK_REALTIME, &wall);
  ::clock_gettime(CLOCK_BOOTTIME, &boot);
  return static_cast<double>(wall.tv_sec - boot.tv_sec) +
         static_cast<double>(wall.tv_nsec - boot.tv_nsec) * 1e-9;
}

/// Adds messages that name a process of the job, and kills and GPU faults since the job started,
/// because the victim may no longer be in the process table.
void add_message(const Scene& scene, const KernelMessage& message, double boot, Facts& facts) {
  const std::string_view about = kernel_message_about(message.text);
  const double time = boot + message.seconds_since_boot;
  const JobProcess* process = scene.context.job().find(pid_in_kernel_message(message.text));
  const bool unnamed_but_ours = (about == "xid" || about == "oom-kill") && time >= scene.job_start;
  if (about.empty() || (process == nullptr && !unnamed_but_ours)) {
    return;
  }
  RawFact fact{.rank = {}, .pid = {}, .kind = "kernel-log", .fields = {}};
  if (process != nullptr) {
    fact = fact_about(*process, "kernel-log");
  } else if (const pid_t victim = pid_in_kernel_message(message.text); victim > 0) {
    fact.pid = victim;
  }
  constexpr std::size_t kLongestLine = 400;
  fact.fields["text"] = base::elide(base::printable(message.text), kLongestLine);
  fact.fields["time"] = time;
  fact.fields["about"] = std::string(about);
  facts.push_back(std::move(fact));
}

void add_kernel_log(const Scene& scene, Facts& facts) {
  const base::UniqueFd fd(::open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!fd) {
    return;
  }
  const double boot = boot_epoch();
  constexpr std::chrono::milliseconds kDeadline{30};
  constexpr std::size_t kMostMessages = 64;
  const auto end = std::chrono::steady_clock::now() + kDeadline;
  const std::size_t before = facts.size();
  std::array<char, 8192> record{};
  while (std::chrono::steady_clock::now() < end && facts.size() < before + kMostMessages) {
    const ssize_t got = ::read(fd.get(), record.data(), record.size());
    if (got < 0 && errno == EPIPE) {
      continue;  // overwritten while being read: continue with the next one
    }
    if (got <= 0) {
      return;
    }
    if (const auto message =
            parse_kernel_message(std::string_view(record.data(), static_cast<std::size_t>(got)))) {
      add_message(scene, *message, boot, facts);
    }
  }
}

std::optional<pid_t> number_after(std::string_view text, std::string_view mark) {
  const std::size_t at = text.find(mark);
  if (at == std::string_view::npos) {
    return std::nullopt;
  }
  const std::string_view rest = text.substr(at + mark.size());
  const auto end = std::find_if_not(rest.begin(), rest.end(), [](char c) {
    return std::isdigit(static_cast<unsigned char>(c)) != 0;
  });
  return number<pid_t>(rest.substr(0, static_cast<std::size_t>(end - rest.begin())));
}

}  // namespace

std::optional<KernelMessage> parse_kernel_message(std::string_view record) {
  // "6,339,5140900,-;text\n SUBSYSTEM=…": priority, sequence, microseconds since boot, flags
  const std::size_t semicolon = record.find(';');
  const auto fields =
      base::split(record.substr(0, semicolon == std::string_view::npos ? 0 : semicolon), ',');
  const auto micros = fields.size() > 2 ? number<std::uint64_t>(fields[2]) : std::nullopt;
  if (!micros) {
    return std::nullopt;
  }
  const std::string_view rest = record.substr(semicolon + 1);
  return KernelMessage{.seconds_since_boot = static_cast<double>(*micros) * 1e-6,
                       .text = std::string(rest.substr(0, rest.find('\n')))};
}

std::string_view kernel_message_about(std::string_view text) {
  const auto has = [text](std::string_view part) {
    return text.find(part) != std::string_view::npos;
  };
  if (has("Killed process ") || has("oom-kill:")) {
    return "oom-kill";
  }
  if (has(" segfault at ") || has("general protection fault") || has("trap invalid opcode")) {
    return "segfault";
  }
  if (has("NVRM: Xid")) {
    return "xid";
  }
  return has(" blocked for more than ") ? "hung-task" : std::string_view();
}

pid_t pid_in_kernel_message(std::string_view text) {
  for (const std::string_view mark :
       {std::string_view("Killed process "), std::string_view("pid=")}) {
    if (text.find(mark) != std::string_view::npos) {
      return number_after(text, mark).value_or(0);
    }
  }
  // "python[77]: segfault at", "INFO: task python:77 blocked for"
  const std::size_t blocked = text.find(" blocked for more than ");
  const std::size_t end = blocked != std::string_view::npos ? blocked : text.find("]: ");
  if (end == std::string_view::npos) {
    return 0;
  }
  const std::string_view before = text.substr(0, end);
  const std::size_t start = before.find_last_of(blocked != std::string_view::npos ? ":" : "[");
  return start == std::string_view::npos ? 0 : number<pid_t>(before.substr(start + 1)).value_or(0);
}

void add_kernel_facts(const Scene& scene, Facts& facts) {
  std::set<std::string> seen;
  for (const JobProcess& process : scene.context.job().processes) {
    const auto group = process.row.state == 'Z' ? std::nullopt : memory_group(process.row.pid);
    if (group && seen.insert(group->folder).second) {
      add_memory(process, *group, facts);
    }
  }
  add_kernel_log(scene, facts);
}

}  // namespace ddpdoctor::sources

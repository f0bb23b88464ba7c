// SPDX-License-Identifier: Apache-2.0
#include "collector/sources/processes/process_table.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <system_error>
#include <unistd.h>

#include <fmt/format.h>
#include <sys/stat.h>

#include "base/text.h"
#include "base/unique_fd.h"
#include "collector/sources/processes/proc_file.h"

namespace ddpdoctor::sources {

namespace {

constexpr unsigned kKernelThreadFlag = 0x00200000;  // PF_KTHREAD, include/linux/sched.h
constexpr std::size_t kEnvironmentCap = std::size_t{2} * 1024 * 1024;

double ticks_per_second() {
  const long ticks = ::sysconf(_SC_CLK_TCK);
  return ticks > 0 ? static_cast<double>(ticks) : 100.0;
}

double seconds(const timespec& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

/// Start of the boot clock in seconds since the epoch; more precise than /proc/stat's btime in
/// whole seconds.
double boot_epoch() {
  timespec wall{};
  timespec boot{};
  ::clock_gettime(CLOCK_REALTIME, &wall);
  ::clock_gettime(CLOCK_BOOTTIME, &boot);
  return seconds(wall) - seconds(boot);
}

/// Fields of /proc/PID/stat by their number in proc(5); only those after comm.
class StatFields {
 public:
  explicit StatFields(std::string_view after_comm) : fields_(words(after_comm)) {}

  [[nodiscard]] std::string_view text(std::size_t field) const {
    constexpr std::size_t kFirst = 3;  // the state
    const std::size_t index = field - kFirst;
    return index < fields_.size() ? fields_[index] : std::string_view();
  }
  template <typename Number>
  [[nodiscard]] Number value(std::size_t field) const {
    return number<Number>(text(field)).value_or(Number{});
  }

 private:
  std::vector<std::string_view> fields_;
};

std::optional<ProcessRow> read_row(pid_t pid, double boot) {
  const std::string folder = fmt::format("/proc/{}", pid);
  const base::UniqueFd open(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!open) {
    return std::nullopt;
  }
  const auto stat_text = read_file_at(open.get(), "stat");
  auto row = stat_text ? parse_stat(*stat_text) : std::nullopt;
  if (!row) {
    return std::nullopt;
  }
  row->pid = pid;
  row->start_time = boot + static_cast<double>(row->start_ticks) / ticks_per_second();
  struct stat owner{};
  if (::fstat(open.get(), &owner) == 0) {
    row->uid = owner.st_uid;
  }
  if (!row->kernel_thread && row->state != 'Z') {
    if (const auto command = read_file_at(open.get(), "cmdline")) {
      row->command = nul_separated(*command);
    }
  }
  return row;
}

std::string refusal(std::string_view what) {
  return fmt::format("{}: {}", what, std::generic_category().message(errno));
}

void note(std::string& problem, const std::string& sentence) {
  problem += problem.empty() ? sentence : "; " + sentence;
}

/// "rchar: 12\nwchar: 34\n…": bytes that went through read and write for any file.
std::optional<std::int64_t> bytes_moved(std::string_view text) {
  std::int64_t total = 0;
  for (const std::string_view key : {"rchar: ", "wchar: "}) {
    const std::size_t at = text.find(key);
    const auto value = at == std::string_view::npos
                           ? std::nullopt
                           : number<std::int64_t>(text.substr(
                                 at + key.size(), text.find('\n', at) - at - key.size()));
    if (!value) {
      return std::nullopt;
    }
    total += *value;
  }
  return total;
}

void read_environment(ProcessRow& row) {
  if (const auto moved = read_file(proc_path(row.pid, "io"))) {
    row.io_bytes = bytes_moved(*moved);
  }
  const auto text = read_file(proc_path(row.pid, "environ"), kEnvironmentCap);
  if (!text) {
    note(row.problem, refusal("environ"));
    return;
  }
  for (std::string& entry : nul_separated(*text)) {
    const std::size_t equals = entry.find('=');
    if (equals != std::string::npos && equals > 0) {
      row.environment.emplace(entry.substr(0, equals), entry.substr(equals + 1));
    }
  }
}

}  // namespace

std::optional<ProcessRow> parse_stat(std::string_view text) {
  // comm is free text of the process and may contain ") R 1": the last parenthesis ends it.
  const std::size_t open = text.find('(');
  const std::size_t close = text.rfind(')');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) {
    return std::nullopt;
  }
  const StatFields fields(text.substr(close + 1));
  constexpr std::size_t kStartTime = 22;
  if (fields.text(3).size() != 1 || fields.text(kStartTime).empty()) {
    return std::nullopt;
  }
  ProcessRow row;
  row.pid = number<pid_t>(base::trim(text.substr(0, open))).value_or(0);
  row.comm = text.substr(open + 1, close - open - 1);
  row.state = fields.text(3).front();
  row.ppid = fields.value<pid_t>(4);
  row.group = fields.value<pid_t>(5);
  row.session = fields.value<pid_t>(6);
  row.kernel_thread = (fields.value<unsigned>(9) & kKernelThreadFlag) != 0;
  const auto cpu_ticks = fields.value<std::uint64_t>(14) + fields.value<std::uint64_t>(15);
  row.cpu_seconds = static_cast<double>(cpu_ticks) / ticks_per_second();
  row.threads = fields.value<int>(20);
  row.start_ticks = fields.value<std::uint64_t>(kStartTime);
  row.arguments_at = fields.value<std::uint64_t>(48);
  if (row.state == 'Z') {
    row.exit_code = number<int>(fields.text(52));
  }
  return row;
}

ProcessTable read_process_table() {
  ProcessTable table;
  const double boot = boot_epoch();
  for (const int pid : numbered_entries("/proc")) {
    if (auto row = read_row(pid, boot)) {
      table.emplace(pid, std::move(*row));
    }
  }
  return table;
}

std::optional<ProcessRow> read_process(pid_t pid) {
  return read_row(pid, boot_epoch());
}

void complete(ProcessRow& row) {
  if (row.complete) {
    return;
  }
  row.complete = true;
  if (const auto status = read_file(proc_path(row.pid, "status"))) {
    const auto inner = words(status_field(*status, "NSpid").value_or(""));
    row.inner_pid = inner.empty() ? row.pid : number<pid_t>(inner.back()).value_or(row.pid);
  }
  if (row.kernel_thread || row.state == 'Z' || row.state == 'X') {
    return;
  }
  if (const auto wchan = read_file(proc_path(row.pid, "wchan")); wchan && *wchan != "0") {
    row.wchan = *wchan;
  }
  if (const auto exe = read_link(proc_path(row.pid, "exe"))) {
    row.exe = *exe;
  } else {
    note(row.problem, refusal("exe"));
  }
  read_environment(row);
}

const JobProcess* JobTree::find(pid_t pid) const {
  const auto found =
      std::find_if(processes.begin(), processes.end(),
                   [pid](const JobProcess& process) { return process.row.pid == pid; });
  return found == processes.end() ? nullptr : &*found;
}

}  // namespace ddpdoctor::sources

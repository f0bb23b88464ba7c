// SPDX-License-Identifier: Apache-2.0
#include "collector/monitor/python_dump.h"

#include <algorithm>
#include <fstream>
#include <map>

#include <fmt/format.h>

#include "collector/sources/processes/access.h"
#include "collector/sources/processes/process_table.h"
#include "collector/stacks/capture.h"
#include "collector/stacks/python_visit.h"
#include "collector/stacks/target/maps_table.h"

namespace ddpdoctor::monitor {
namespace {

constexpr std::size_t kMostOfAFile = std::size_t{64} << 20U;
constexpr std::size_t kMostProcesses = 10000;

/// What can be read only while the interpreter is accessible.
struct Visited {
  std::string version;
  std::map<pid_t, std::uint64_t> idents;       // by tid inside the container
  std::map<pid_t, std::vector<bool>> entries;  // one per Python frame, innermost first
};

/// "3.10.13" from the file of a CPython before 3.11, which does not store its version as a number.
std::string version_in_file(const std::string& path, const std::string& series) {
  std::ifstream file(path, std::ios::binary);
  std::string bytes;
  std::string part(std::size_t{1} << 20U, '\0');
  while (bytes.size() < kMostOfAFile &&
         (file.read(part.data(), static_cast<std::streamsize>(part.size())) || file.gcount() > 0)) {
    bytes.append(part, 0, static_cast<std::size_t>(file.gcount()));
  }
  const std::string wanted = std::string(1, '\0') + series + ".";
  for (std::size_t at = bytes.find(wanted); at != std::string::npos;
       at = bytes.find(wanted, at + 1)) {
    const std::size_t end = bytes.find_first_not_of("0123456789abcr+", at + wanted.size());
    if (end != std::string::npos && bytes[end] == '\0' && end > at + wanted.size() &&
        end < at + wanted.size() + 8) {
      return bytes.substr(at + 1, end - at - 1);
    }
  }
  return series;
}

std::string whole_version(stacks::PythonVisit& visit) {
  const std::string series = visit.python.version();
  for (const char* const object : {"libpython", "python"}) {
    if (const auto at = visit.target.symbol(object, "Py_Version")) {  // 3.11 and newer
      const std::uint64_t hex = visit.target.memory().get<std::uint64_t>(*at).value_or(0);
      if (hex >> 32U == 0 && fmt::format("{}.{}", hex >> 24U, (hex >> 16U) & 0xffU) == series) {
        return fmt::format("{}.{}", series, (hex >> 8U) & 0xffU);
      }
    }
    for (const stacks::Mapping& mapping : visit.target.maps().all()) {
      const std::size_t slash = mapping.path.rfind('/');
      if (slash != std::string_view::npos && mapping.path.substr(slash + 1).starts_with(object)) {
        const std::string found = version_in_file(
            fmt::format("/proc/{}/root{}", visit.target.pid(), mapping.path), series);
        if (found != series) {
          return found;
        }
        break;
      }
    }
  }
  return series;
}

void visit(stacks::PythonVisit& visit, std::map<pid_t, Visited>& seen) {
  Visited& here = seen[visit.target.pid()];
  here.version = whole_version(visit);
  for (const stacks::PythonThreadState& state : visit.python.thread_states()) {
    here.idents.emplace(state.inner_tid, state.ident);
  }
  for (const stacks::PythonVisit::Thread& thread : visit.threads) {
    for (const stacks::PythonFrame& frame : thread.frames) {
      here.entries[thread.tid].push_back(frame.raw.entry || frame.raw.shim);
    }
  }
}

/// The process and all its descendants, parents first.
std::vector<pid_t> family(pid_t pid, const sources::ProcessTable& table) {
  std::vector<pid_t> out{pid};
  for (std::size_t i = 0; i < out.size() && out.size() < kMostProcesses; ++i) {
    for (const auto& [one, row] : table) {
      if (row.ppid == out[i] && std::find(out.begin(), out.end(), one) == out.end()) {
        out.push_back(one);
      }
    }
  }
  return out;
}

DumpedThread dumped(const stacks::ThreadStack& thread, const Visited& seen,
                    const stacks::Maps& maps) {
  DumpedThread out{.tid = thread.tid,
                   .ident = 0,
                   .name = thread.python_name,
                   .active = thread.state == 'R' || thread.holds_gil.value_or(false),
                   .has_gil = thread.holds_gil.value_or(false),
                   .frames = {}};
  if (const auto known = seen.idents.find(thread.inner_tid); known != seen.idents.end()) {
    out.ident = known->second;
  }
  const auto flags = seen.entries.find(thread.tid);
  std::size_t python = 0;
  for (const stacks::Frame& frame : thread.frames) {
    DumpedFrame one{
        .frame = frame, .module_path = {}, .entry = frame.language == stacks::Language::kNative};
    if (frame.language == stacks::Language::kPython) {
      one.entry =
          flags != seen.entries.end() && python < flags->second.size() && flags->second[python];
      ++python;
    } else if (const stacks::Mapping* mapping = maps.find(frame.address); mapping != nullptr) {
      one.module_path = mapping->path;
    }
    out.frames.push_back(std::move(one));
  }
  return out;
}

}  // namespace

base::Result<std::vector<DumpedProcess>> dump_python(pid_t pid, const DumpOptions& options) {
  const sources::ProcessTable table = sources::read_process_table();
  if (!table.contains(pid) || !sources::may_read(pid)) {
    return tl::make_unexpected(sources::why_unreadable(pid));
  }
  const std::vector<pid_t> pids =
      options.descendants ? family(pid, table) : std::vector<pid_t>{pid};
  std::map<pid_t, Visited> seen;
  stacks::MapsTable maps;
  const auto captured =
      stacks::capture(pids, {.allow_stop = options.allow_stop,
                             .native = options.native,
                             .torch_state = false,
                             .visitor = [&seen](stacks::PythonVisit& one) { visit(one, seen); },
                             .maps = &maps});
  std::vector<DumpedProcess> out;
  for (const stacks::ProcessStacks& process : captured) {
    const auto known = seen.find(process.pid);
    if (known == seen.end()) {
      if (process.pid == pid) {
        const bool said = process.python && !process.python->problem.empty();
        return base::failure(fmt::format("process {}: {}", pid,
                                         said ? process.python->problem
                                         : process.problems.empty()
                                             ? "no Python interpreter was found in it"
                                             : process.problems.front()));
      }
      continue;
    }
    sources::ProcessRow row = sources::read_process(process.pid).value_or(sources::ProcessRow{});
    sources::complete(row);
    DumpedProcess one{.pid = process.pid,
                      .parent = row.ppid,
                      .command = row.command,
                      .exe = row.exe,
                      .version = known->second.version,
                      .threads = {}};
    for (const stacks::ThreadStack& thread : process.threads) {
      if (thread.has_python) {
        one.threads.push_back(dumped(thread, known->second, maps.of(process.pid)));
      }
    }
    out.push_back(std::move(one));
  }
  return out;
}

}  // namespace ddpdoctor::monitor

// SPDX-License-Identifier: Apache-2.0
// The user's source lines. File names come from the job's memory, so a file is read only if its
// name is that of a Python, C, C++ or Fortran source, and only up to a limit.
#include <algorithm>
#include <array>
#include <cstdint>
#include <fcntl.h>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unistd.h>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <sys/stat.h>

#include "base/text.h"
#include "base/unique_fd.h"
#include "collector/model/building/backends.h"
#include "collector/model/building/build_model.h"
#include "collector/model/building/imported_files.h"
#include "collector/model/building/languages.h"
#include "collector/model/call_frames.h"
#include "collector/model/questions.h"
#include "collector/sources/processes/roles.h"

namespace ddpdoctor::model {
namespace {

constexpr std::size_t kMaxFiles = 200;
constexpr std::int64_t kMaxBytes = 2 << 20;
constexpr std::size_t kMaxImported = 64;  // files that no frame names
constexpr std::size_t kMaxFrameworkFiles = 24;
constexpr std::size_t kMaxFrameworkBytes = 3 << 19;  // of all of them

/// The process that named a file, and the lines it named.
struct Wanted {
  std::set<int> lines;
  const Process* process = nullptr;
};

struct Text {
  std::string content;
  double changed = 0;  // seconds since the epoch
};

using Files = std::map<std::string, Wanted>;

void want(Files& files, const std::string& file, int line, const Process* process) {
  if (!(is_user_file(file) || may_be_installed_by_user(file)) || file.front() == '<' ||
      file.find('\0') != std::string::npos) {
    return;
  }
  const auto known = files.find(file);
  if (known == files.end() && files.size() >= kMaxFiles) {
    return;
  }
  Wanted& wanted = files[file];
  wanted.lines.insert(line);
  if (wanted.process == nullptr) {
    wanted.process = process;
  }
}

/// Adds the script of a rank without user frames, for example after the end of its program.
void want_script(Files& files, const Process& process) {
  const bool shown = std::any_of(process.threads.begin(), process.threads.end(),
                                 [](const Thread& one) { return !user_frames(one).empty(); });
  const auto script = process.role == Role::kRank && !process.threads.empty() && !shown
                          ? sources::python_target(process.command)
                          : std::nullopt;
  if (!script || !script->ends_with(".py") || process.exit) {
    return;
  }
  std::error_code error;
  const auto folder =
      std::filesystem::read_symlink(fmt::format("/proc/{}/cwd", process.pid), error);
  const auto path = folder / *script;  // the script alone if its path is absolute
  if (!error && path.is_absolute()) {
    want(files, path.lexically_normal().string(), 1, &process);
  }
}

Files wanted_files(const JobModel& job) {
  Files files;
  for (const Observation& observation : job.observations) {
    for (const Process& p : observation.processes) {
      want_script(files, p);
      for (const Thread& thread : p.threads) {
        for (const Frame* frame : user_frames(thread)) {
          want(files, frame->file, frame->line, &p);
        }
        for (const Frame& frame :
             // The line of a library frame shows whether an exception is being handled.
             thread.frames) {
          if (frame.language == Language::kPython && frame.file.ends_with("/contextlib.py") &&
              frame.function.ends_with("__exit__")) {
            want(files, frame.file, frame.line, &p);
          }
        }
      }
    }
  }
  for (const CollectiveCall& call : job.collectives) {
    for (const CallSite& site : call.callers) {
      want(files, site.file, site.line, rank_process(job, call.rank));
    }
    if (call.call_site.known()) {
      want(files, call.call_site.file, call.call_site.line, rank_process(job, call.rank));
    }
  }
  return files;
}

/// The files of frameworks on the ranks' stacks and in their newest calls.
Files framework_files(const JobModel& job) {
  Files files;
  const auto want_file = [&files](const std::string& file, const Process* process) {
    const bool source = file.ends_with(".py") && is_framework_file(file);
    if (source && (files.contains(file) || files.size() < kMaxFrameworkFiles)) {
      files[file].process = process;
    }
  };
  for (const Observation& observation : job.observations) {
    for (const Process& process : observation.processes) {
      for (const Thread& thread : process.threads) {
        for (const Frame& frame : thread.frames) {
          if (process.role == Role::kRank && frame.language == Language::kPython) {
            want_file(frame.file, &process);
          }
        }
      }
    }
  }
  for (const Fact* fact : facts(job, kCallFrames)) {
    const Process* process = fact->rank ? rank_process(job, *fact->rank) : nullptr;
    for (const CallSite& site : frames_in(*fact)) {
      if (process != nullptr) {
        want_file(site.file, process);
      }
    }
  }
  return files;
}

bool is_source(const std::string& path, const std::string& content) {
  constexpr std::array<std::string_view, 13> kEndings = {".py",  ".pyw", ".c",   ".cc", ".cpp",
                                                         ".cxx", ".h",   ".hpp", ".cu", ".cuh",
                                                         ".f",   ".f90", ".F90"};
  if (std::any_of(kEndings.begin(), kEndings.end(),
                  [&path](std::string_view ending) { return path.ends_with(ending); })) {
    return true;
  }
  const std::string first = content.substr(0, content.find('\n'));
  return first.starts_with("#!") && first.find("python") != std::string::npos;
}

std::optional<Text> read_text(const std::string& path) {
  const base::UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat status{};
  if (!fd || ::fstat(fd.get(), &status) != 0 || !S_ISREG(status.st_mode) ||
      status.st_size > kMaxBytes) {
    return std::nullopt;
  }
  Text out;
  out.changed = static_cast<double>(status.st_mtim.tv_sec);
  std::array<char, 1 << 16> buffer{};
  while (out.content.size() <= static_cast<std::size_t>(kMaxBytes)) {
    const ssize_t got = ::read(fd.get(), buffer.data(), buffer.size());
    if (got < 0) {
      return std::nullopt;
    }
    if (got == 0) {
      return is_source(path, out.content) ? std::optional(std::move(out)) : std::nullopt;
    }
    out.content.append(buffer.data(), static_cast<std::size_t>(got));
  }
  return std::nullopt;
}

/// Reads the file as the process sees it: its root may be a container's, and relative names start
/// at its working directory.
std::optional<Text> read_as_seen(const std::string& file, const Process* process) {
  const bool absolute = file.starts_with('/');
  if (process != nullptr && !process->exit) {
    const std::string base = fmt::format("/proc/{}/{}", process->pid, absolute ? "root" : "cwd/");
    if (auto text = read_text(base + file)) {
      return text;
    }
  }
  return absolute ? read_text(file) : std::nullopt;
}

std::map<int, std::string> lines_of(const std::string& content) {
  std::map<int, std::string> out;
  int number = 0;
  for (const std::string_view line : base::split(content, '\n')) {
    const bool carriage_return = line.ends_with('\r');
    out.emplace_hint(out.end(), ++number, line.substr(0, line.size() - (carriage_return ? 1 : 0)));
  }
  return out;
}

/// The lines known already are in the file, and the named lines are not blank.
bool agrees(const std::map<int, std::string>& file, const program::SourceText* known,
            const std::set<int>& named) {
  const auto text = [&file](int number) {
    const auto line = file.find(number);
    return line == file.end() ? std::string_view() : base::trim(line->second);
  };
  if (known != nullptr && !std::all_of(known->begin(), known->end(), [&](const auto& entry) {
        return text(entry.first) == base::trim(entry.second);
      })) {
    return false;
  }
  return std::none_of(named.begin(), named.end(),
                      [&](int number) { return number > 0 && text(number).empty(); });
}

/// The first possible path of a module that exists; a file that is known already counts and is not
/// read again.
std::optional<std::string> read_module(JobModel& job, const std::vector<std::string>& places,
                                       const Process* process, const program::KnownTexts& parsed,
                                       std::set<std::string>& tried) {
  for (const std::string& place : places) {
    if (job.sources.contains(place)) {
      return std::nullopt;
    }
    if (!is_user_file(place) || !tried.insert(place).second) {
      continue;
    }
    if (const auto text = read_as_seen(place, process)) {
      job.sources[place] = program::text_of(place, lines_of(text->content), parsed);
      return place;
    }
  }
  return std::nullopt;
}

/// Loads what the user's files import, also indirectly.
void load_imported(JobModel& job, const Files& named, const program::KnownTexts& parsed) {
  std::vector<std::pair<std::string, const Process*>> files;
  for (const auto& [file, wanted] : named) {
    if (is_user_file(file) && file.ends_with(".py") && job.sources.contains(file)) {
      files.emplace_back(file, wanted.process);
    }
  }
  const std::size_t most = files.size() + kMaxImported;
  std::set<std::string> tried;
  for (std::size_t i = 0; i < files.size(); ++i) {
    const auto [file, process] = files[i];  // the vector grows
    for (const auto& places : import_candidates(file, job.sources[file])) {
      auto found =
          files.size() < most ? read_module(job, places, process, parsed, tried) : std::nullopt;
      if (found) {
        files.emplace_back(std::move(*found), process);
      }
    }
  }
}

void load_frameworks(JobModel& job, const program::KnownTexts& parsed) {
  std::size_t bytes = 0;
  for (const auto& [file, wanted] : framework_files(job)) {
    if (job.sources.contains(file)) {
      continue;
    }
    const auto text = read_as_seen(file, wanted.process);
    if (text && bytes + text->content.size() <= kMaxFrameworkBytes) {
      bytes += text->content.size();
      job.framework_sources[file] = program::text_of(file, lines_of(text->content), parsed);
    }
  }
}

}  // namespace

void load_local_sources(JobModel& job) {
  bool read = false;
  Files files = wanted_files(job);
  for (auto& [file, wanted] : files) {
    wanted.process = nullptr;  // a process of another machine, or one that has ended
    const auto content = read_text(file);
    const auto known = job.sources.find(file);
    auto lines = content ? lines_of(content->content) : std::map<int, std::string>();
    if (content &&
        agrees(lines, known == job.sources.end() ? nullptr : &known->second, wanted.lines)) {
      job.sources[file] = std::move(lines);
      read = true;
    }
  }
  mark_languages(job);
  if (read) {
    load_imported(job, files, {});
    job.coverage.warnings.emplace_back(
        "source lines are those of this machine: the job may have run others");
  }
  mark_backends(job);
}

void load_sources(JobModel& job, const program::KnownTexts& parsed) {
  const Files files = wanted_files(job);
  for (const auto& [file, wanted] : files) {
    if (job.sources.contains(file)) {
      continue;
    }
    const auto text = read_as_seen(file, wanted.process);
    if (!text) {
      continue;
    }
    job.sources[file] = program::text_of(file, lines_of(text->content), parsed);
    const auto started = wanted.process != nullptr ? wanted.process->start_time : std::nullopt;
    if (started && text->changed > *started + 1) {
      job.coverage.warnings.push_back(fmt::format(
          "{} was changed after the job had started: its lines may not be those that run", file));
    }
  }
  mark_languages(job);
  load_imported(job, files, parsed);
  load_frameworks(job, parsed);
  mark_backends(job);
}

}  // namespace ddpdoctor::model

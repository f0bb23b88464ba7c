// SPDX-License-Identifier: Apache-2.0
#include "collector/imports/stack_dumps/dump_sources.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/model/questions.h"

namespace ddpdoctor::imports {
namespace {

using std::string_view;

constexpr std::size_t kMostFiles = 200;
constexpr std::size_t kMostFolders = 32;
constexpr std::uintmax_t kMostBytes = 2 << 20;

/// Line and function of a frame.
using Places = std::set<std::pair<int, std::string>>;

bool is_short(string_view file) {
  return file.ends_with(".py") && !file.starts_with('/') && !file.starts_with('<') &&
         file.find("..") == file.npos && file.find('\0') == file.npos && model::is_user_file(file);
}

/// Calls `each(frame, process)` for every Python frame of a job.
template <typename Job, typename Each>
void each_python_frame(Job& job, const Each& each) {
  for (auto& observation : job.observations) {
    for (auto& process : observation.processes) {
      for (auto& thread : process.threads) {
        for (auto& frame : thread.frames) {
          if (frame.language == model::Language::kPython) {
            each(frame, process);
          }
        }
      }
    }
  }
}

std::map<std::string, Places> short_files(const model::JobModel& job) {
  std::map<std::string, Places> out;
  each_python_frame(job, [&out](const model::Frame& frame, const model::Process&) {
    if (is_short(frame.file) && (out.size() < kMostFiles || out.contains(frame.file))) {
      out[frame.file].emplace(frame.line, frame.function);
    }
  });
  return out;
}

/// "./lib/python3.11".
std::string library_folder(const model::Process& process) {
  const std::string& version = process.python_version;
  const std::size_t minor = version.rfind('.');
  return fmt::format("./lib/python{}", minor == std::string::npos ? "3" : version.substr(0, minor));
}

/// "threading.py" of the standard library gets its folder, by which the detectors tell it from a
/// user's file. Which names are the library's, is_user_file() knows.
void place_library_files(model::JobModel& job) {
  each_python_frame(job, [](model::Frame& frame, const model::Process& process) {
    if (frame.file.ends_with(".py") && frame.file.find('/') == std::string::npos &&
        !model::is_user_file(frame.file)) {
      frame.file = fmt::format("{}/{}", library_folder(process), frame.file);
    }
  });
}

/// "llava" of "llava/train/train.py"; empty for a file without a folder.
string_view package_of(string_view file) {
  const std::size_t slash = file.find('/');
  return is_short(file) && slash != file.npos ? file.substr(0, slash) : string_view();
}

/// The packages of the job's own files, as far as short names show them.
struct Packages {
  std::set<std::string, std::less<>> of_entry;  // of the outermost line of a process
  std::map<std::string, std::set<std::string>, std::less<>> files;
  std::map<std::string, std::set<std::string>, std::less<>> called_by;
};

Packages packages_in(const model::JobModel& job) {
  Packages out;
  string_view called;  // the package of the frame that this one called; empty if it has none
  const model::Process* of = nullptr;
  each_python_frame(job, [&](const model::Frame& frame, const model::Process& process) {
    called = of == &process ? called : string_view();
    of = &process;
    const string_view package = package_of(frame.file);
    if (!package.empty()) {
      out.files[std::string(package)].insert(frame.file);
      if (frame.function == "<module>") {
        out.of_entry.emplace(package);
      }
      if (!called.empty()) {
        out.called_by[std::string(called)].emplace(package);
      }
    }
    called = frame.function == "<module>" ? string_view() : package;
  });
  return out;
}

/// The program is a package, of which several files are seen: other packages that it calls are
/// installed, and get the folder of such.
void place_called_packages(model::JobModel& job) {
  const Packages packages = packages_in(job);
  if (packages.of_entry.size() != 1) {
    return;
  }
  const std::string& own = *packages.of_entry.begin();
  if (packages.files.at(own).size() < 2) {
    return;
  }
  each_python_frame(job, [&](model::Frame& frame, const model::Process& process) {
    const auto callers = packages.called_by.find(package_of(frame.file));
    if (callers != packages.called_by.end() && callers->first != own &&
        callers->second.contains(own)) {
      frame.file = fmt::format("{}/site-packages/{}", library_folder(process), frame.file);
    }
  });
}

/// Short names are relative to sys.path, whose first folder is that of the script. A script named
/// by a relative path is looked for in the folders in which the job may have been started.
void add_script_folders(const model::JobModel& job, std::span<const std::string> started_in,
                        std::vector<std::string>& folders) {
  const auto add = [&folders](std::string folder) {
    if (folders.size() < kMostFolders &&
        std::find(folders.begin(), folders.end(), folder) == folders.end()) {
      folders.push_back(std::move(folder));
    }
  };
  for (const model::Observation& observation : job.observations) {
    for (const model::Process& process : observation.processes) {
      for (const std::string& word : process.command) {
        const std::size_t slash = word.rfind('/');
        if (slash == word.npos || !word.ends_with(".py")) {
          continue;
        }
        if (word.front() == '/') {
          add(word.substr(0, slash));
        } else if (is_short(word)) {
          for (const std::string& from : started_in) {
            add(from + "/" + word.substr(0, slash));
          }
        }
      }
    }
  }
}

std::optional<std::string> read_python(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error) || error ||
      std::filesystem::file_size(path, error) > kMostBytes || error) {
    return std::nullopt;
  }
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

std::size_t indentation(string_view line) {
  return std::min(line.find_first_not_of(" \t"), line.size());
}

/// "train" of "    async def train(self):"; empty for any other line.
string_view defined_in(string_view line) {
  line = base::trim(line);
  if (line.starts_with("async ")) {
    line = base::trim(line.substr(6));
  }
  if (!line.starts_with("def ")) {
    return {};
  }
  line = base::trim(line.substr(4));
  return line.substr(0, line.find_first_of("( [:"));
}

/// "train" of "Trainer.train" and "main.<locals>.train".
string_view plain(string_view function) {
  const std::size_t dot = function.rfind('.');
  return dot == function.npos ? function : function.substr(dot + 1);
}

/// True if the line is in a function with that name. For lambdas, comprehensions and modules, only
/// the existence of the line can be checked.
bool stands_in(const std::vector<string_view>& lines, int number, string_view function) {
  const auto index = static_cast<std::size_t>(number) - 1;
  if (number <= 0 || index >= lines.size() || base::trim(lines[index]).empty()) {
    return false;
  }
  if (function.empty() || function.front() == '<' || plain(function).starts_with('<')) {
    return true;
  }
  std::size_t limit = indentation(lines[index]);
  for (std::size_t i = index; i-- > 0 && limit > 0;) {
    const string_view line = lines[i];
    if (base::trim(line).empty() || indentation(line) >= limit) {
      continue;
    }
    const string_view defined = defined_in(line);
    if (!defined.empty()) {
      return defined == plain(function);
    }
    // A continuation line, such as the end of a call's arguments, may be indented less.
    limit = base::trim(line).starts_with(')') ? limit : indentation(line);
  }
  return false;
}

bool fits(string_view text, const Places& places) {
  const std::vector<string_view> lines = base::split(text, '\n');
  return std::all_of(places.begin(), places.end(), [&lines](const auto& place) {
    return stands_in(lines, place.first, place.second);
  });
}

using Found = std::map<std::string, std::string>;  // short name → full path

Found found_in(const std::map<std::string, Places>& wanted,
               const std::vector<std::string>& folders) {
  Found out;
  for (const auto& [file, places] : wanted) {
    for (const std::string& folder : folders) {
      const std::string path = folder + "/" + file;
      const auto text = read_python(path);
      if (text && fits(*text, places)) {
        std::error_code error;
        const auto full = std::filesystem::canonical(path, error);
        out.emplace(file, error ? path : full.string());
        break;
      }
    }
  }
  return out;
}

}  // namespace

void find_short_sources(model::JobModel& job, std::span<const std::string> folders) {
  place_library_files(job);
  place_called_packages(job);
  std::vector<std::string> all(
      folders.begin(),
      folders.begin() + static_cast<std::ptrdiff_t>(std::min(folders.size(), kMostFolders / 2)));
  add_script_folders(job, std::vector<std::string>(all), all);
  const Found found = found_in(short_files(job), all);
  if (found.empty()) {
    return;
  }
  each_python_frame(job, [&found](model::Frame& frame, const model::Process&) {
    if (const auto full = found.find(frame.file); full != found.end()) {
      frame.file = full->second;
    }
  });
  for (const auto& [file, full] : found) {
    if (auto lines = job.sources.extract(file)) {
      job.sources[full].merge(lines.mapped());
    }
  }
}

}  // namespace ddpdoctor::imports

// SPDX-License-Identifier: Apache-2.0
#include "cli/pyspy/stacks_dump.h"

#include <filesystem>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/text.h"

namespace ddpdoctor::cli {
namespace {

using monitor::DumpedFrame;
using monitor::DumpedProcess;
using monitor::DumpedThread;
using stacks::Language;

/// Short names are looked up once for each file.
class FileNames {
 public:
  FileNames(pid_t pid, bool full) : pid_(pid), full_(full) {}

  const std::string& of(const DumpedFrame& one) {
    const bool native = one.frame.language == Language::kNative;
    const std::string& path =
        native ? (full_ && !one.module_path.empty() ? one.module_path : one.frame.module)
               : one.frame.file;
    const auto [place, is_new] = names_.try_emplace(path);
    if (is_new) {
      place->second = base::printable(native || full_ ? path : short_filename(path, pid_));
    }
    return place->second;
  }

 private:
  pid_t pid_;
  bool full_;
  std::map<std::string, std::string> names_;
};

std::string name_of(const DumpedFrame& one) {
  return one.frame.function.empty() ? fmt::format("{:#x}", one.frame.address)
                                    : base::printable(one.frame.function);
}

std::string_view status_of(const DumpedThread& thread) {
  if (!thread.active) {
    return "idle";
  }
  return thread.has_gil ? "active+gil" : "active";
}

void add_thread(const DumpedThread& thread, FileNames& files, const DumpStyle& style,
                std::string& out) {
  out += fmt::format("Thread {} ({})", thread.tid, status_of(thread));
  out += thread.name.empty() ? "\n" : fmt::format(": \"{}\"\n", base::printable(thread.name));
  for (const DumpedFrame& one : thread.frames) {
    const std::string& file = files.of(one);
    out += one.frame.language == Language::kPython && one.frame.line > 0
               ? fmt::format("    {} ({}:{})\n", name_of(one), file, one.frame.line)
               : fmt::format("    {} ({})\n", name_of(one), file);
    if (style.locals && !one.frame.locals.empty()) {
      out += "        Locals:\n";
      for (const auto& [name, value] : one.frame.locals) {
        out += fmt::format("            {}: {}\n", base::printable(name), base::printable(value));
      }
    }
  }
}

nlohmann::ordered_json json_of(const DumpedFrame& one, FileNames& shortened, const DumpStyle& style,
                               bool outermost) {
  const bool native = one.frame.language == Language::kNative;
  nlohmann::ordered_json out;
  out["name"] = name_of(one);
  out["filename"] = native ? one.module_path : one.frame.file;
  out["module"] =
      native ? nlohmann::ordered_json(one.module_path) : nlohmann::ordered_json(nullptr);
  out["short_filename"] = shortened.of(one);
  out["line"] = native ? 0 : one.frame.line;
  out["locals"] = nullptr;
  if (style.locals && !one.frame.locals.empty()) {
    out["locals"] = nlohmann::ordered_json::array();
    for (const auto& [name, value] : one.frame.locals) {
      out["locals"].push_back({{"name", name}, {"addr", 0}, {"arg", false}, {"repr", value}});
    }
  }
  out["is_entry"] = one.entry;
  out["is_shim_entry"] = native || outermost;
  return out;
}

}  // namespace

std::string short_filename(const std::string& file, pid_t pid) {
  if (!file.starts_with('/')) {
    return file;
  }
  const std::filesystem::path root = fmt::format("/proc/{}/root", pid);
  std::filesystem::path folder(file);
  std::error_code error;
  do {
    folder = folder.parent_path();
  } while (folder != folder.root_path() &&
           std::filesystem::exists(root / folder.relative_path() / "__init__.py", error));
  const std::string above = folder.string();
  return file.substr(above == "/" ? 1 : above.size() + 1);
}

std::string dump_as_text(const std::vector<DumpedProcess>& processes, const DumpStyle& style) {
  std::map<pid_t, std::string> commands;
  std::string out;
  for (const DumpedProcess& process : processes) {
    commands[process.pid] = base::printable(fmt::format("{}", fmt::join(process.command, " ")));
    if (!out.empty()) {
      out += "\n" + std::string(80, '-') + "\n";
    }
    out += fmt::format("Process {}: {}\nPython v{} ({})\n", process.pid, commands[process.pid],
                       process.version, base::printable(process.exe));
    if (const auto parent = commands.find(process.parent); parent != commands.end()) {
      out += fmt::format("Parent Process {}: {}\n", process.parent, parent->second);
    }
    out += "\n";
    FileNames files(process.pid, style.full_filenames);
    for (const DumpedThread& thread : process.threads) {
      add_thread(thread, files, style, out);
    }
  }
  return out;
}

std::string dump_as_json(const std::vector<DumpedProcess>& processes, const DumpStyle& style) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const DumpedProcess& process : processes) {
    FileNames shortened(process.pid, false);
    // the newest thread first, as the interpreter lists them
    for (auto thread = process.threads.rbegin(); thread != process.threads.rend(); ++thread) {
      nlohmann::ordered_json frames = nlohmann::ordered_json::array();
      for (const DumpedFrame& one : thread->frames) {
        frames.push_back(json_of(one, shortened, style, &one == &thread->frames.back()));
      }
      out.push_back({{"pid", process.pid},
                     {"thread_id", thread->ident},
                     {"thread_name", thread->name.empty() ? nlohmann::ordered_json(nullptr)
                                                          : nlohmann::ordered_json(thread->name)},
                     {"os_thread_id", thread->tid},
                     {"active", thread->active},
                     {"owns_gil", thread->has_gil},
                     {"frames", std::move(frames)},
                     {"process_info", nullptr}});
    }
  }
  return out.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace ddpdoctor::cli

// SPDX-License-Identifier: Apache-2.0
#include "collector/model/questions.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "base/path_ends.h"
#include "collector/model/told_by_logs.h"

namespace ddpdoctor::model {
namespace {

constexpr std::array<std::pair<Role, std::string_view>, 6> kRoleNames = {{
    {Role::kRank, "rank"},
    {Role::kLauncher, "launcher"},
    {Role::kDataLoaderWorker, "dataloader-worker"},
    {Role::kResourceTracker, "resource-tracker"},
    {Role::kShmManager, "shm-manager"},
    {Role::kOther, "other"},
}};

/// "DistributedDataParallel.forward" also matches forward; "Trainer.fit.<locals>.step" matches
/// step.
bool function_matches(std::string_view qualified, std::string_view name) {
  if (qualified == name) {
    return true;
  }
  return qualified.size() > name.size() && qualified.ends_with(name) &&
         qualified[qualified.size() - name.size() - 1] == '.';
}

/// Code from the command line or typed interactively: counts as the user's if the thread has no
/// better frame. The "<string>" of a spawned child only starts multiprocessing.
std::vector<const Frame*> typed_frames(const Thread& thread) {
  std::vector<const Frame*> out;
  const Frame* inner = nullptr;
  for (const Frame& frame : thread.frames) {
    if (frame.language != Language::kPython) {
      continue;
    }
    const bool typed = frame.file == "<string>" || frame.file == "<stdin>";
    const bool starts_child =
        inner != nullptr && base::path_contains(inner->file, base::kMultiprocessing);
    if (typed && !starts_child) {
      out.push_back(&frame);
    } else if (!typed) {
      out.clear();  // a library called what it had generated
    }
    inner = &frame;
  }
  return out;
}

/// Frames of an installed package that is not a known library. Only if the thread runs a program
/// from its start: a library's own thread runs no user code.
std::vector<const Frame*> installed_frames(const Thread& thread) {
  std::vector<const Frame*> out;
  bool program = false;
  for (const Frame& frame : thread.frames) {
    if (frame.language == Language::kPython) {
      program = program || frame.function == "<module>";
      if (may_be_installed_by_user(frame.file)) {
        out.push_back(&frame);
      }
    }
  }
  return program ? out : std::vector<const Frame*>{};
}

/// Runs a program from its start, or is the first thread of a process started by multiprocessing. A
/// library's helper thread runs no user code.
bool runs_a_program(const Thread& thread) {
  const Frame* outermost = nullptr;
  bool module = false;
  for (const Frame& frame : thread.frames) {
    if (frame.language == Language::kPython) {
      module = module || frame.function == "<module>";
      outermost = &frame;
    }
  }
  return module || thread.name == "MainThread" ||
         (outermost != nullptr && base::path_contains(outermost->file, base::kMultiprocessing));
}

/// Frames of libraries that are a program themselves: if no frame is the user's, the line is in
/// what vLLM, DeepSpeed or transformers calls.
std::vector<const Frame*> framework_frames(const Thread& thread) {
  std::vector<const Frame*> out;
  if (runs_a_program(thread)) {
    for (const Frame& frame : thread.frames) {
      if (frame.language == Language::kPython && is_framework_file(frame.file)) {
        out.push_back(&frame);
      }
    }
  }
  return out;
}

/// "_PyEval_EvalFrameDefault", "Py_RunMain": not the user's, although functions called from it may
/// be.
bool is_interpreter_function(std::string_view function) {
  return function.starts_with("_PyEval_") || function.starts_with("PyEval_") ||
         function == "Py_RunMain" || function == "Py_BytesMain";
}

/// Of libc, the C++ library or the interpreter: their sources have short names in a build with
/// symbols ("lowlevellock.c", "thread.cc"), as a user's own may have.
bool is_runtime_function(std::string_view function) {
  constexpr std::array<std::string_view, 11> kBeginnings = {
      "__",    "std::",      "pthread_", "futex_",     "do_futex_wait", "start_thread",
      "clone", "pybind11::", "_Py",      "PyGILState", "take_gil"};
  return std::any_of(kBeginnings.begin(), kBeginnings.end(),
                     [function](std::string_view begin) { return function.starts_with(begin); });
}

/// Frames of the user's code in a program without Python, which are those outside MPI: an MPI built
/// by the user has sources of its own.
std::vector<const Frame*> compiled_frames(const Thread& thread) {
  std::vector<const Frame*> out;
  for (const Frame& frame : thread.frames) {
    // Written in C; further inside is what it called.
    if (is_interpreter_function(frame.function)) {
      std::erase_if(out, [](const Frame* inner) {
        return inner->file.ends_with(".c") || inner->file.ends_with(".h");
      });
      break;
    }
    if (is_mpi_function(frame.function)) {
      out.clear();
    } else if (!frame.file.empty() && frame.function != "_start" &&
               !is_runtime_function(frame.function) && is_user_file(frame.file)) {
      out.push_back(&frame);
    }
  }
  return out;
}

}  // namespace

bool is_mpi_function(std::string_view function) {
  return function.starts_with("MPI_") || function.starts_with("PMPI_");
}

const Observation* latest(const JobModel& job) {
  return job.observations.empty() ? nullptr : &job.observations.back();
}

const Observation* previous(const JobModel& job) {
  return job.observations.size() < 2 ? nullptr : &job.observations[job.observations.size() - 2];
}

const Process* rank_process(const JobModel& job, Rank rank) {
  const Observation* now = latest(job);
  if (now == nullptr) {
    return nullptr;
  }
  const auto found =
      std::find_if(now->processes.begin(), now->processes.end(),
                   [rank](const Process& p) { return p.role == Role::kRank && p.rank == rank; });
  return found == now->processes.end() ? nullptr : &*found;
}

const Process* process(const JobModel& job, pid_t pid) {
  const Observation* now = latest(job);
  if (now == nullptr || pid <= 0) {  // 0: unknown
    return nullptr;
  }
  const auto found = std::find_if(now->processes.begin(), now->processes.end(),
                                  [pid](const Process& p) { return p.pid == pid; });
  return found == now->processes.end() ? nullptr : &*found;
}

const Thread* main_thread(const Process& process) {
  if (process.threads.empty()) {
    return nullptr;
  }
  const auto found = std::find_if(process.threads.begin(), process.threads.end(),
                                  [&process](const Thread& t) { return t.tid == process.pid; });
  return found == process.threads.end() ? &process.threads.front() : &*found;
}

bool all_gpus_are_busy(const JobModel& job) {
  constexpr double kBusy = 90;  // percent
  const auto uses = facts(job, kGpuUse);
  return !uses.empty() && std::all_of(uses.begin(), uses.end(), [](const Fact* use) {
    return use->number("percent").value_or(0) >= kBusy;
  });
}

bool was_dumped(const Process& process) {
  return !process.threads.empty() && process.threads.front().capture.starts_with(kDumpedFrom);
}

RankSet ranks_seen(const JobModel& job) {
  std::vector<Rank> ranks;
  if (const Observation* now = latest(job)) {
    for (const Process& p : now->processes) {
      if (p.role == Role::kRank && p.rank) {
        ranks.push_back(*p.rank);
      }
    }
  }
  return RankSet(std::move(ranks));
}

RankSet all_ranks(const JobModel& job) {
  std::vector<Rank> ranks;
  if (job.world_size && *job.world_size > 0) {
    ranks.resize(static_cast<std::size_t>(std::min(*job.world_size, kMaxWorldSize)));
    Rank next = 0;
    std::generate(ranks.begin(), ranks.end(), [&next] { return next++; });
    return RankSet(std::move(ranks));
  }
  ranks = ranks_seen(job).values();
  for (const ProcessGroup& g : job.groups) {
    ranks.insert(ranks.end(), g.ranks.begin(), g.ranks.end());
  }
  for (const CollectiveCall& call : job.collectives) {
    ranks.push_back(call.rank);
  }
  return RankSet(std::move(ranks));
}

const Frame* user_frame(const Thread& thread) {
  const auto frames = user_frames(thread);
  return frames.empty() ? nullptr : frames.front();
}

std::vector<const Frame*> user_frames(const Thread& thread) {
  std::vector<const Frame*> out;
  bool python = false;
  bool scripts_only = true;
  for (const Frame& frame : thread.frames) {
    python = python || frame.language == Language::kPython;
    if (frame.language == Language::kPython && is_user_file(frame.file) && !frame.of_backend) {
      out.push_back(&frame);
      scripts_only = scripts_only && is_console_script(frame.file);
    }
  }
  if (!python) {
    return compiled_frames(thread);
  }
  if (!scripts_only) {
    return out;
  }
  auto installed = installed_frames(thread);
  if (!installed.empty()) {
    return installed;
  }
  if (out.empty()) {
    out = typed_frames(thread);
  }
  return out.empty() ? framework_frames(thread) : out;
}

std::vector<CallSite> user_sites(const std::vector<CallSite>& all) {
  const auto those = [&all](auto wanted) {
    std::vector<CallSite> out;
    std::copy_if(all.begin(), all.end(), std::back_inserter(out), wanted);
    return out;
  };
  auto own = those([](const CallSite& site) { return is_user_file(site.file); });
  const bool scripts_only = std::all_of(
      own.begin(), own.end(), [](const CallSite& site) { return is_console_script(site.file); });
  if (!scripts_only) {
    return own;
  }
  auto installed = those([](const CallSite& site) { return may_be_installed_by_user(site.file); });
  if (!installed.empty()) {
    return installed;
  }
  if (own.empty()) {
    own = those([](const CallSite& site) {
      return site.file == "<stdin>" || (site.file == "<string>" && site.line > 1);
    });
  }
  return own.empty() ? those([](const CallSite& site) { return is_framework_file(site.file); })
                     : own;
}

bool has_python_frame(const Thread& thread, std::string_view function,
                      std::string_view file_suffix) {
  return find_python_frame(thread, function, file_suffix) != nullptr;
}

bool has_native_frame(const Thread& thread, std::string_view part) {
  return find_native_frame(thread, part) != nullptr;
}

const Frame* find_python_frame(const Thread& thread, std::string_view function,
                               std::string_view file_suffix) {
  const auto found =
      std::find_if(thread.frames.begin(), thread.frames.end(), [&](const Frame& frame) {
        return frame.language == Language::kPython && function_matches(frame.function, function) &&
               base::path_ends_with(frame.file, file_suffix);
      });
  return found == thread.frames.end() ? nullptr : &*found;
}

const Frame* innermost_python(const Thread& thread) {
  const auto found =
      std::find_if(thread.frames.begin(), thread.frames.end(),
                   [](const Frame& frame) { return frame.language == Language::kPython; });
  return found == thread.frames.end() ? nullptr : &*found;
}

const Frame* find_native_frame(const Thread& thread, std::string_view part) {
  const auto found =
      std::find_if(thread.frames.begin(), thread.frames.end(), [&](const Frame& frame) {
        return frame.language == Language::kNative &&
               frame.function.find(part) != std::string::npos;
      });
  return found == thread.frames.end() ? nullptr : &*found;
}

CallSite call_site(const Frame& frame) {
  return {.file = frame.file,
          .line = frame.line,
          .function = frame.function,
          .module = frame.file.empty() ? frame.module : std::string()};
}

std::optional<std::string_view> source_line(const JobModel& job, std::string_view file, int line) {
  const auto lines = job.sources.find(std::string(file));
  if (lines == job.sources.end()) {
    return std::nullopt;
  }
  const auto text = lines->second.find(line);
  if (text == lines->second.end()) {
    return std::nullopt;
  }
  return std::string_view(text->second);
}

std::string_view role_name(Role role) {
  const auto found = std::find_if(kRoleNames.begin(), kRoleNames.end(),
                                  [role](const auto& entry) { return entry.first == role; });
  return found == kRoleNames.end() ? "other" : found->second;
}

std::optional<Role> role_of(std::string_view name) {
  const auto found = std::find_if(kRoleNames.begin(), kRoleNames.end(),
                                  [name](const auto& entry) { return entry.second == name; });
  if (found == kRoleNames.end()) {
    return std::nullopt;
  }
  return found->first;
}

std::vector<const Fact*> facts(const JobModel& job, std::string_view kind) {
  std::vector<const Fact*> out;
  for (const Fact& fact : job.facts) {
    if (fact.kind == kind) {
      out.push_back(&fact);
    }
  }
  return out;
}

const ProcessGroup* group(const JobModel& job, std::string_view id) {
  const auto found = std::find_if(job.groups.begin(), job.groups.end(),
                                  [id](const ProcessGroup& g) { return g.id == id; });
  return found == job.groups.end() ? nullptr : &*found;
}

bool is_of_nccl(const ProcessGroup& group) {
  return group.backend.find("nccl") != std::string::npos ||
         group.backend.find("rccl") != std::string::npos;
}

std::string id_of_namesake(std::string_view name, const RankSet& members) {
  return fmt::format("{}:{}", name, members.ranges());
}

std::string_view name_in_id(std::string_view id) {
  return id.substr(0, id.find(':'));
}

}  // namespace ddpdoctor::model

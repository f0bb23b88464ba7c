// SPDX-License-Identifier: Apache-2.0
// Locks on files (/proc/locks), and lock files whose mere existence makes other processes wait.
#include <algorithm>
#include <array>
#include <dirent.h>
#include <fcntl.h>
#include <map>
#include <memory>
#include <unistd.h>

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include "base/text.h"
#include "base/unique_fd.h"
#include "collector/sources/facts/fact_sources.h"
#include "collector/sources/files/mounts.h"
#include "collector/sources/processes/proc_file.h"
#include "collector/sources/processes/python_frames.h"
#include "collector/sources/waits/lock_holders.h"

namespace ddpdoctor::sources {

namespace {

/// The path of the file with this inode among a process's descriptors; empty if the kernel does not
/// show inodes.
std::string path_of_inode(const Scene& scene, pid_t pid, std::uint64_t inode) {
  for (const Descriptor& one : scene.context.descriptors().of(pid)) {
    if (one.kind != DescriptorKind::kFile && one.kind != DescriptorKind::kShm) {
      continue;
    }
    const auto text = read_file(fmt::format("/proc/{}/fdinfo/{}", pid, one.fd));
    if (text && number<std::uint64_t>(status_field(*text, "ino").value_or("")) == inode) {
      return one.link;
    }
  }
  return {};
}

void say_holder(const Scene& scene, pid_t holder, RawFact& fact) {
  fact.fields["holder_pid"] = std::int64_t{holder};
  const bool alive = read_process(holder).has_value();
  fact.fields["holder_alive"] = alive;
  fact.fields["holder_in_job"] = scene.context.job().find(holder) != nullptr;
  if (alive) {
    fact.fields["holder_command"] = short_command(holder);
  }
}

void add_lock(const Scene& scene, const FileLock& held, const FileLock* waits, Facts& facts) {
  const JobTree& job = scene.context.job();
  const JobProcess* waiter = waits == nullptr ? nullptr : job.find(waits->pid);
  const JobProcess* about = waiter != nullptr ? waiter : job.find(held.pid);
  if (about == nullptr) {
    return;
  }
  RawFact fact = fact_about(*about, "file-lock");
  const std::string path = path_of_inode(scene, about->row.pid, held.inode);
  fact.fields["path"] = path;
  fact.fields["lock"] = held.type;
  fact.fields["mode"] = waits == nullptr ? held.mode : waits->mode;
  fact.fields["inode"] = static_cast<std::int64_t>(held.inode);
  if (held.pid > 0) {
    say_holder(scene, held.pid, fact);
  }
  if (const pid_t heir = waits == nullptr ? 0 : heir_of(scene.context, path, held); heir > 0) {
    fact.fields["heir_pid"] = std::int64_t{heir};
  }
  if (waits != nullptr) {
    fact.fields["waiting_pid"] = std::int64_t{waits->pid};
  }
  facts.push_back(std::move(fact));
}

void add_kernel_locks(const Scene& scene, Facts& facts) {
  const auto& locks = scene.context.file_locks();
  for (const FileLock& lock : locks) {
    const FileLock* held = lock.waits ? held_against(locks, lock) : &lock;
    if (held != nullptr) {
      add_lock(scene, *held, lock.waits ? &lock : nullptr, facts);
    }
  }
}

/// One lock file and the processes that wait for it.
struct LockFile {
  const JobProcess* process = nullptr;  // the process in whose mount namespace the path is valid
  std::set<pid_t> waiting;
  std::string function;
  bool by_existence = false;
  bool from_frame = false;
};

using LockFiles = std::map<std::string, LockFile>;

std::string variable(const Scene& scene, const JobProcess& process, const std::string& name) {
  const stacks::ProcessStacks* stacks = scene.context.stacks_of(process.row.pid);
  if (stacks != nullptr && stacks->python) {
    const auto found = stacks->python->environment.find(name);
    if (found != stacks->python->environment.end()) {
      return found->second;
    }
  }
  const auto found = process.row.environment.find(name);
  return found == process.row.environment.end() ? std::string() : found->second;
}

std::vector<std::string> entries_of(const std::string& folder) {
  struct Close {
    void operator()(DIR* open) const {
      ::closedir(open);
    }
  };
  constexpr std::size_t kMostEntries = 256;
  std::vector<std::string> names;
  const std::unique_ptr<DIR, Close> open(::opendir(folder.c_str()));
  while (open != nullptr && names.size() < kMostEntries) {
    const dirent* entry =
        ::readdir(open.get());  // NOLINT(concurrency-mt-unsafe): the stream is ours alone
    if (entry == nullptr) {
      break;
    }
    if (entry->d_name[0] != '.') {
      names.emplace_back(entry->d_name);
    }
  }
  return names;
}

/// The lock files in torch's folder for extension builds, if the frame does not show the path:
/// FOLDER/lock and FOLDER/*/lock below its cache.
std::vector<std::string> extension_locks(const Scene& scene, const JobProcess& process) {
  const std::string chosen = variable(scene, process, "TORCH_EXTENSIONS_DIR");
  const std::string home = variable(scene, process, "XDG_CACHE_HOME").empty()
                               ? variable(scene, process, "HOME") + "/.cache"
                               : variable(scene, process, "XDG_CACHE_HOME");
  const std::string top = chosen.empty() ? home + "/torch_extensions" : chosen;
  const std::string root = proc_path(process.row.pid, "root");
  const auto mount = mount_of_path(mounts_of(process.row.pid), top);
  if (!top.starts_with('/') || (scene.server_silent && mount && mount->remote())) {
    return {};
  }
  std::vector<std::string> folders{top};
  for (const std::string& name : entries_of(root + top)) {
    folders.push_back(fmt::format("{}/{}", top, name));
    for (const std::string& below : entries_of(root + folders.back())) {
      if (chosen.empty()) {
        folders.push_back(fmt::format("{}/{}/{}", top, name, below));
      }
    }
  }
  std::vector<std::string> found;
  for (const std::string& folder : folders) {
    struct stat state{};
    if (::stat((root + folder + "/lock").c_str(), &state) == 0 && S_ISREG(state.st_mode)) {
      found.push_back(folder + "/lock");
    }
  }
  return found;
}

void find_in_frames(const Scene& scene, LockFiles& files) {
  for (const stacks::ProcessStacks& stacks : scene.stacks) {
    const JobProcess* process = scene.context.job().find(stacks.pid);
    for (const stacks::ThreadStack& thread : stacks.threads) {
      const auto frame = process == nullptr ? std::nullopt : lock_file_frame(thread, stacks.pid);
      if (!frame) {
        continue;
      }
      std::vector<std::string> paths{frame->path};
      if (frame->path.empty()) {
        paths = extension_locks(scene, *process);
      }
      for (const std::string& path : paths) {
        LockFile& file = files[path];
        file.process = process;
        file.waiting.insert(stacks.pid);
        file.function = frame->function;
        file.by_existence = frame->by_existence;
        file.from_frame = true;
      }
    }
  }
}

void find_in_descriptors(const Scene& scene, LockFiles& files) {
  for (const JobProcess& process : scene.context.job().processes) {
    for (const Descriptor& one : scene.context.descriptors().of(process.row.pid)) {
      const bool lock = one.kind == DescriptorKind::kFile && !one.deleted &&
                        (one.link.ends_with(".lock") || one.link.ends_with("/lock"));
      if (lock && files[one.link].process == nullptr) {
        files[one.link].process = &process;
      }
    }
  }
}

/// The process that has the file open and does not wait for it.
pid_t holder_of(const Scene& scene, const std::string& path, const LockFile& file,
                std::uint64_t inode) {
  for (const FileLock& lock : scene.context.file_locks()) {
    if (!lock.waits && inode != 0 && lock.inode == inode && lock.pid > 0 &&
        read_process(lock.pid)) {
      return lock.pid;
    }
  }
  const auto first_stranger = [&file](const std::vector<Holder>& holders) {
    const auto found = std::find_if(holders.begin(), holders.end(), [&file](const Holder& holder) {
      return !file.waiting.contains(holder.pid);
    });
    return found == holders.end() ? pid_t{0} : found->pid;
  };
  const pid_t in_job = first_stranger(scene.context.descriptors().holders(path));
  return in_job != 0 || !file.from_frame
             ? in_job
             : first_stranger(scene.context.descriptors().holders_anywhere(path));
}

constexpr std::size_t kLongestNote = 1024;

/// The content that a creator writes into its lock file: a pid and often a host name on the next
/// line.
struct Named {
  pid_t pid = 0;
  std::string host;
};

Named named_in(const std::string& path) {
  const base::UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW));
  std::array<char, kLongestNote> buffer{};
  struct stat state{};
  if (!file || ::fstat(file.get(), &state) != 0 || !S_ISREG(state.st_mode)) {
    return {};
  }
  const ssize_t size = ::read(file.get(), buffer.data(), buffer.size());
  const std::string_view text(buffer.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
  const std::size_t end = std::min(text.find('\n'), text.size());
  const auto pid = number<pid_t>(base::trim(text.substr(0, end)));
  if (!pid || *pid <= 0) {
    return {};
  }
  const std::string_view rest = end < text.size() ? text.substr(end + 1) : std::string_view();
  return {.pid = *pid, .host = base::printable(base::trim(rest.substr(0, rest.find('\n'))))};
}

/// Adds the process that the file names and whether it is running; other machines cannot be
/// checked. Returns its pid if it runs, else 0.
pid_t add_named(const Scene& scene, const LockFile& file, const std::string& path, double made,
                RawFact& fact) {
  const Named named = named_in(path);
  if (named.pid == 0) {
    return 0;
  }
  fact.fields["named_pid"] = std::int64_t{named.pid};
  utsname here{};
  if (!named.host.empty()) {
    fact.fields["named_host"] = named.host;
    if (::uname(&here) != 0 || named.host != static_cast<const char*>(here.nodename)) {
      return 0;
    }
  }
  const pid_t pid = scene.context.outer_pid(file.process->row, named.pid);
  if (pid == 0) {
    return 0;  // a process of that container, not of this job
  }
  const auto row = read_process(pid);
  // A process that started after the file was created only reuses the pid.
  const bool alive = row && row->state != 'Z' && row->start_time <= made + 1;
  fact.fields["named_alive"] = alive;
  return alive ? pid : 0;
}

void add_lock_file(const Scene& scene, const std::string& path, const LockFile& file,
                   Facts& facts) {
  RawFact fact = fact_about(*file.process, "lock-file");
  fact.fields["path"] = path;
  fact.fields["protocol"] = std::string(file.by_existence ? "existence" : "lock");
  fact.fields["source"] = std::string(file.from_frame ? "frame" : "descriptor");
  if (file.from_frame) {
    fact.fields["function"] = file.function;
    fact.fields["waiting_pids"] = pid_list(file.waiting);
  }
  struct stat state{};
  pid_t named = 0;
  const pid_t pid = file.process->row.pid;
  const auto mount = mount_of_path(mounts_of(pid), path);
  if (!(scene.server_silent && mount && mount->remote())) {
    const bool exists = ::stat((proc_path(pid, "root") + path).c_str(), &state) == 0;
    fact.fields["exists"] = exists;
    if (exists) {
      const double modified = static_cast<double>(state.st_mtim.tv_sec) +
                              static_cast<double>(state.st_mtim.tv_nsec) * 1e-9;
      fact.fields["modified"] = modified;
      fact.fields["age_seconds"] = std::max(0.0, scene.now - modified);
      fact.fields["older_than_job"] = modified < scene.job_start;
      if (file.by_existence) {
        named = add_named(scene, file, proc_path(pid, "root") + path, modified, fact);
      }
    }
  }
  const pid_t user = holder_of(scene, path, file, state.st_ino);
  const pid_t holder = user != 0 ? user : named;
  fact.fields["held"] = holder != 0;
  if (holder != 0) {
    fact.fields["holder_pid"] = std::int64_t{holder};
    fact.fields["holder_command"] = short_command(holder);
  }
  facts.push_back(std::move(fact));
}

}  // namespace

void add_lock_facts(const Scene& scene, Facts& facts) {
  add_kernel_locks(scene, facts);
  LockFiles files;
  find_in_frames(scene, files);
  find_in_descriptors(scene, files);
  for (const auto& [path, file] : files) {
    if (path.starts_with('/') && file.process != nullptr) {
      add_lock_file(scene, path, file, facts);
    }
  }
}

}  // namespace ddpdoctor::sources

// SPDX-License-Identifier: Apache-2.0
#include "collector/preflight/setting.h"

#include <algorithm>
#include <dirent.h>
#include <memory>

#include <sys/statvfs.h>

#include "base/text.h"
#include "collector/sources/processes/proc_file.h"

namespace ddpdoctor::preflight {

namespace {

constexpr std::size_t kMostNames = 4096;

std::optional<std::uint64_t> limit_value(std::string_view text) {
  return sources::number<std::uint64_t>(text);  // "unlimited", "max" → nothing
}

}  // namespace

std::optional<std::string> Setting::variable(const std::string& name) const {
  const auto found = environment.find(name);
  return found == environment.end() || found->second.empty() ? std::nullopt
                                                             : std::optional(found->second);
}

std::optional<std::string> Setting::file(const std::string& path) const {
  return sources::read_file(root + path);
}

std::vector<std::string> Setting::names(const std::string& path) const {
  struct Close {
    void operator()(DIR* open) const {
      ::closedir(open);
    }
  };
  std::vector<std::string> found;
  const std::unique_ptr<DIR, Close> open(::opendir((root + path).c_str()));
  while (open != nullptr && found.size() < kMostNames) {
    const dirent* entry =
        ::readdir(open.get());  // NOLINT(concurrency-mt-unsafe): the stream is ours alone
    if (entry == nullptr) {
      break;
    }
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") {
      found.emplace_back(name);
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::optional<Space> Setting::space(const std::string& path) const {
  if (const auto told = told_space.find(path); told != told_space.end()) {
    return told->second;
  }
  struct statvfs found{};
  if (::statvfs((root + path).c_str(), &found) != 0) {
    return std::nullopt;
  }
  return Space{.total = std::uint64_t{found.f_blocks} * found.f_frsize,
               .free = std::uint64_t{found.f_bavail} * found.f_frsize};
}

std::optional<Limit> Setting::limit(std::string_view name) const {
  const std::string text = file("/proc/self/limits").value_or("");
  for (const std::string_view line : base::split(text, '\n')) {
    if (line.starts_with(name)) {
      const auto fields = sources::words(line.substr(name.size()));
      if (fields.size() >= 2) {
        return Limit{.soft = limit_value(fields[0]), .hard = limit_value(fields[1])};
      }
    }
  }
  return std::nullopt;
}

int Setting::cpus() const {
  const std::string status = file("/proc/self/status").value_or("");
  int count = 0;
  for (const std::string_view part :
       base::split(sources::status_field(status, "Cpus_allowed_list").value_or(""), ',')) {
    const std::size_t dash = part.find('-');
    const auto first = sources::number<int>(part.substr(0, dash));
    const auto last =
        dash == std::string_view::npos ? first : sources::number<int>(part.substr(dash + 1));
    count += first && last && *last >= *first ? *last - *first + 1 : 0;
  }
  return count;
}

int Setting::gpus() const {
  const auto devices = names("/dev");
  return static_cast<int>(
      std::count_if(devices.begin(), devices.end(), [](const std::string& name) {
        constexpr std::string_view kPrefix = "nvidia";
        return name.starts_with(kPrefix) &&
               sources::number<int>(std::string_view(name).substr(kPrefix.size())).has_value();
      }));
}

int Setting::ranks() const {
  return plan.ranks_here.value_or(plan.ranks_by_gpu ? std::max(1, gpus()) : 1);
}

std::optional<Setting::Group> Setting::cgroup(const std::string& limit,
                                              const std::string& usage) const {
  // cgroup version 2 only: one line "0::/path". In a cgroup namespace the path is "/", and the
  // files of our own group are at the top of the mount.
  const std::string own = file("/proc/self/cgroup").value_or("");
  std::string path;
  for (const std::string_view line : base::split(own, '\n')) {
    if (line.starts_with("0::")) {
      path = std::string(line.substr(3));
    }
  }
  std::optional<Group> tightest;
  constexpr int kDeepest = 64;
  for (int depth = 0; depth < kDeepest; ++depth) {
    const std::string folder = "/sys/fs/cgroup" + (path == "/" ? std::string() : path);
    const auto value = limit_value(base::trim(file(folder + "/" + limit).value_or("")));
    if (value && (!tightest || *value < tightest->limit)) {
      tightest = Group{.limit = *value,
                       .used = limit_value(base::trim(file(folder + "/" + usage).value_or(""))),
                       .path = folder};
    }
    if (path.empty() || path == "/") {
      break;
    }
    path = path.substr(0, path.rfind('/'));
  }
  return tightest;
}

}  // namespace ddpdoctor::preflight

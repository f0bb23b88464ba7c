// SPDX-License-Identifier: Apache-2.0
#include "collector/monitor/spool.h"

#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <fmt/format.h>
#include <sys/stat.h>

#include "base/host_name.h"
#include "base/text.h"
#include "base/unique_fd.h"
#include "wire/names.h"

namespace ddpdoctor::monitor {
namespace {

constexpr std::string_view kHostFile = ".ddpdoctor-host";

template <typename Action>
void for_each_ring(const std::string& folder, Action action) {
  DIR* const directory = ::opendir(folder.c_str());
  if (directory == nullptr) {
    return;
  }
  // NOLINTNEXTLINE(concurrency-mt-unsafe): this stream is ours alone
  while (const dirent* const entry = ::readdir(directory)) {
    const std::string name = entry->d_name;
    if (name.ends_with(wire::kRingSuffix)) {
      action(name);
    }
  }
  ::closedir(directory);
}

base::Result<std::string> temporary_folder() {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): no code here calls setenv
  const char* const wanted = std::getenv("TMPDIR");
  std::string pattern =
      std::string(wanted != nullptr && *wanted == '/' ? wanted : "/tmp") + "/ddpdoctor-XXXXXX";
  if (::mkdtemp(pattern.data()) == nullptr) {
    return base::failure(
        fmt::format("no temporary folder for the recording: {}: {}", pattern, std::strerror(errno)),
        "set TMPDIR, or name a folder with --spool");
  }
  return pattern;
}

base::Result<std::string> checked_folder(const std::string& folder) {
  if (::mkdir(folder.c_str(), S_IRWXU) != 0 && errno != EEXIST) {
    return base::failure(fmt::format("--spool {}: {}", folder, std::strerror(errno)),
                         "name a folder that you may write");
  }
  struct stat status{};
  if (::stat(folder.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) {
    return base::failure(fmt::format("--spool {}: not a folder", folder));
  }
  if (status.st_uid != ::geteuid()) {
    return base::failure(fmt::format("--spool {}: belongs to another user", folder),
                         "name a folder of your own");
  }
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return base::failure(fmt::format("--spool {}: others may write it", folder),
                         fmt::format("chmod go-w {}", folder));
  }
  char* const absolute = ::realpath(folder.c_str(), nullptr);
  std::string result = absolute != nullptr ? absolute : folder;
  ::free(absolute);
  return result;
}

/// The name of the first host that records into this folder. The file is complete before it becomes
/// visible.
std::string host_that_records(const std::string& folder, const std::string& host) {
  const std::string path = folder + "/" + std::string(kHostFile);
  const std::string written = path + "." + host;
  {
    const base::UniqueFd file(::open(
        written.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR));
    if (!file || ::write(file.get(), host.data(), host.size()) < 0) {
      return host;
    }
  }
  ::link(written.c_str(), path.c_str());
  ::unlink(written.c_str());
  return recording_host(folder).value_or(host);
}

/// In a folder shared by several hosts, each host but the first uses a subfolder, because pids of
/// two hosts may be equal.
base::Result<std::string> folder_of_host(const std::string& folder, const std::string& host) {
  std::string own = TRY(checked_folder(folder));
  const bool plain = !host.empty() && host.find('/') == std::string::npos && host.front() != '.';
  if (!plain || host_that_records(own, host) == host) {
    return own;
  }
  own = TRY(checked_folder(own + "/" + host));
  host_that_records(own, host);
  return own;
}

}  // namespace

std::optional<std::string> recording_host(const std::string& folder) {
  constexpr std::size_t kLongestName = 255;
  const std::string path = folder + "/" + std::string(kHostFile);
  const base::UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  std::array<char, kLongestName> text{};
  const ssize_t length = file ? ::read(file.get(), text.data(), text.size()) : -1;
  return length > 0
             ? std::optional(base::printable({text.data(), static_cast<std::size_t>(length)}))
             : std::nullopt;
}

base::Result<Spool> Spool::open(const std::string& folder) {
  return folder.empty() ? Spool(TRY(temporary_folder()), true)
                        : Spool(TRY(folder_of_host(folder, base::host_name())), false);
}

Spool::Spool(Spool&& other) noexcept
    : folder_(std::move(other.folder_)), temporary_(std::exchange(other.temporary_, false)) {}

Spool::~Spool() {
  if (!temporary_) {
    return;
  }
  for_each_ring(folder_,
                [this](const std::string& name) { ::unlink((folder_ + "/" + name).c_str()); });
  ::rmdir(folder_.c_str());
}

std::vector<std::string> rings_in(const std::string& folder) {
  std::vector<std::string> names;
  for_each_ring(folder, [&names](const std::string& name) { names.push_back(name); });
  return names;
}

Pulse PulseWatch::read() {
  for_each_ring(folder_, [this](const std::string& name) {
    if (!tails_.contains(name)) {
      if (auto tail = sources::RingTail::open(folder_ + "/" + name)) {
        tails_.emplace(name, std::move(*tail));
      }
    }
  });
  Pulse pulse;
  pulse.processes = tails_.size();
  for (auto& [name, tail] : tails_) {
    const sources::RingNews news = tail.read();
    pulse.collectives += news.collectives;
    pulse.children_killed += news.children_killed;
    for (const sources::CallSignature& call : news.calls) {
      pulse.contradiction = agreement_.contradicts(call) || pulse.contradiction;
    }
  }
  return pulse;
}

}  // namespace ddpdoctor::monitor

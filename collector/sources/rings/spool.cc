// SPDX-License-Identifier: Apache-2.0
// A folder of rings.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <fmt/format.h>
#include <sys/stat.h>

#include "base/unique_fd.h"
#include "collector/sources/rings/generations.h"
#include "collector/sources/rings/reader.h"
#include "wire/layout.h"
#include "wire/names.h"

namespace ddpdoctor::sources {
namespace {

constexpr std::size_t kMostRings = 65536;

base::Result<std::vector<std::string>> ring_names(const std::string& folder) {
  DIR* const directory = ::opendir(folder.c_str());
  if (directory == nullptr) {
    return base::failure(fmt::format("{}: {}", folder, std::strerror(errno)),
                         "name the folder given to run --spool");
  }
  std::vector<std::string> names;
  // NOLINTNEXTLINE(concurrency-mt-unsafe): this stream is ours alone
  while (const dirent* const entry = ::readdir(directory)) {
    const std::string name = entry->d_name;
    if (name.ends_with(wire::kRingSuffix) && names.size() < kMostRings) {
      names.push_back(name);
    }
  }
  ::closedir(directory);
  std::sort(names.begin(), names.end());
  return names;
}

base::Result<Recording> read_file(const std::string& path) {
  const base::UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  struct stat status{};
  if (!fd || ::fstat(fd.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    return base::failure(
        fmt::format("{}: {}", path, fd ? "not a regular file" : std::strerror(errno)));
  }
  std::vector<std::byte> bytes(
      std::min<std::size_t>(static_cast<std::size_t>(status.st_size), sizeof(wire::Ring)));
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t got = ::read(fd.get(), bytes.data() + done, bytes.size() - done);
    if (got <= 0) {
      break;
    }
    done += static_cast<std::size_t>(got);
  }
  return read_ring(std::span(bytes).first(done), path);
}

}  // namespace

base::Result<std::vector<Recording>> read_spool(const std::string& folder,
                                                std::vector<std::string>& problems) {
  const std::vector<std::string> names = TRY(ring_names(folder));
  std::vector<Recording> recordings;
  for (const std::string& name : names) {
    auto recording = read_file(folder + "/" + name);
    if (recording) {
      recordings.push_back(std::move(*recording));
    } else {
      problems.push_back(recording.error().what);
    }
  }
  mark_superseded(recordings);
  return recordings;
}

}  // namespace ddpdoctor::sources

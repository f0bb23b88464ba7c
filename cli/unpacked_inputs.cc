// SPDX-License-Identifier: Apache-2.0
#include "cli/unpacked_inputs.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <unistd.h>

#include <fmt/format.h>
#include <sys/stat.h>

#include "base/text.h"
#include "cli/unpack.h"

namespace ddpdoctor::cli {

namespace {

namespace fs = std::filesystem;

/// "node1" of "/logs/node1.tar.gz".
std::string without_endings(const std::string& archive) {
  fs::path name = fs::path(archive).filename();
  for (bool again = true; again;) {
    again = false;
    for (const std::string_view ending :
         {".gz", ".tgz", ".tar", ".zip", ".zst", ".tzst", ".xz", ".bz2"}) {
      if (name.extension() == ending && name.has_stem()) {
        name = name.stem();
        again = true;
      }
    }
  }
  return name.empty() || name == "." || name == ".." ? "archive" : name.string();
}

auto cannot_unpack(const std::string& path, int error) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): glibc's is per thread
  return base::failure(fmt::format("{} cannot be unpacked: {}", path, std::strerror(error)));
}

}  // namespace

UnpackedInputs::~UnpackedInputs() {
  if (!root_.empty()) {
    std::error_code error;
    fs::remove_all(root_, error);
  }
}

base::Result<std::string> UnpackedInputs::new_folder(const std::string& archive) {
  if (root_.empty()) {
    std::error_code error;
    const fs::path temporary = fs::temp_directory_path(error);
    std::string name = (error ? fs::path("/tmp") : temporary) / "ddpdoctor-unpacked-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) {
      return cannot_unpack(archive, errno);
    }
    root_ = name;
  }
  // Letters only, because a number would be taken for a rank. Below it the archive's own name,
  // which may be that of a machine or rank.
  std::string folder = root_ + "/" + std::string(folders_.size() + 1, 'a');
  for (const std::string& part : {std::string(), "/" + without_endings(archive)}) {
    folder += part;
    if (::mkdir(folder.c_str(), 0700) != 0) {
      return cannot_unpack(archive, errno);
    }
  }
  folders_.emplace_back(folder, as_given(archive));
  return folder;
}

int UnpackedInputs::depth_of(const std::string& path) const {
  int depth = 0;
  std::string given = path;
  for (auto one = folders_.rbegin(); one != folders_.rend(); ++one) {
    if (path.starts_with(one->first + "/")) {
      given = one->second;
      ++depth;
      break;
    }
  }
  // The name of an archive inside an archive shows how deep it is nested.
  for (std::size_t at = given.find(kInside); at != given.npos; at = given.find(kInside, at + 1)) {
    ++depth;
  }
  return depth;
}

base::Result<std::string> UnpackedInputs::folder_for(const std::string& archive) {
  if (depth_of(archive) >= limits_.archives) {
    return base::failure(fmt::format("{} is not unpacked: it is nested in {} archives",
                                     as_given(archive), limits_.archives));
  }
  if (folders_.size() >= 64) {
    return base::failure(fmt::format("{} is not unpacked: 64 archives were", as_given(archive)));
  }
  const std::string folder = TRY(new_folder(archive));
  const auto unpacked = unpack(archive, folder,
                               {.files = limits_.files - files_,
                                .bytes = limits_.bytes - bytes_,
                                .folders = limits_.folders,
                                .filters = limits_.filters});
  if (!unpacked) {
    return base::failure(
        fmt::format("{} cannot be unpacked: {}", folders_.back().second, unpacked.error().what));
  }
  files_ += unpacked->files;
  bytes_ += unpacked->bytes;
  return folder;
}

std::string UnpackedInputs::as_given(std::string sentence) const {
  for (auto one = folders_.rbegin(); one != folders_.rend(); ++one) {  // the longest name first
    const auto& [folder, archive] = *one;
    const std::string ours = folder + "/";
    for (std::size_t at = sentence.find(ours); at != sentence.npos;
         at = sentence.find(ours, at + archive.size())) {
      sentence.replace(at, ours.size(), archive + std::string(kInside));
    }
    for (std::size_t at = sentence.find(folder); at != sentence.npos;
         at = sentence.find(folder, at + archive.size())) {
      sentence.replace(at, folder.size(), archive);
    }
  }
  return sentence;
}

}  // namespace ddpdoctor::cli

// SPDX-License-Identifier: Apache-2.0
// Everything here may come from anybody: only regular files are opened, sizes are capped, and
// contents go to readers made for that.
#include "cli/inputs.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <optional>
#include <unistd.h>

#include <fmt/format.h>
#include <sys/stat.h>

#include "base/text.h"
#include "base/unique_fd.h"
#include "collector/imports/capture.h"
#include "collector/imports/merge.h"
#include "collector/monitor/spool_job.h"
#include "collector/recording/recording.h"

namespace ddpdoctor::cli {

namespace {

constexpr off_t kLargestFile = off_t{1} << 30U;
constexpr std::size_t kMostFiles = 100'000;  // of one folder

enum class Content { kEmpty, kJson, kPickle, kRecording, kUnknown };

std::string reason(int error) {
  return std::strerror(error);  // NOLINT(concurrency-mt-unsafe): glibc's is per thread
}

base::Result<std::string> read_file(const std::string& path) {
  // A FIFO would block without O_NONBLOCK.
  const base::UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat status{};
  if (!fd || ::fstat(fd.get(), &status) != 0) {
    return base::failure(fmt::format("{} cannot be read: {}", path, reason(errno)));
  }
  if (!S_ISREG(status.st_mode)) {
    return base::failure(fmt::format("{} cannot be read: it is no regular file", path));
  }
  if (status.st_size > kLargestFile) {
    return base::failure(fmt::format("{} cannot be read: {} are more than the {} that are allowed",
                                     path, base::bytes(static_cast<double>(status.st_size)),
                                     base::bytes(static_cast<double>(kLargestFile))));
  }
  std::string text(static_cast<std::size_t>(status.st_size), '\0');
  std::size_t have = 0;
  while (have < text.size()) {
    const ssize_t got = ::read(fd.get(), text.data() + have, text.size() - have);
    if (got < 0 && errno != EINTR) {
      return base::failure(fmt::format("{} cannot be read: {}", path, reason(errno)));
    }
    if (got == 0) {
      break;  // it shrank meanwhile
    }
    have += got > 0 ? static_cast<std::size_t>(got) : 0;
  }
  text.resize(have);
  return text;
}

/// "rank_3", "nccl_trace_rank_3": how torch names its dumps.
bool is_named_like_dump(std::string_view path) {
  const std::string_view name = base::file_name(path);
  const std::size_t at = name.rfind("rank_");
  const bool numbered =
      at != std::string_view::npos && at + 5 < name.size() &&
      std::all_of(name.begin() + static_cast<std::ptrdiff_t>(at) + 5, name.end(),
                  [](char digit) { return std::isdigit(static_cast<unsigned char>(digit)) != 0; });
  return numbered || name.ends_with(".pickle") || name.ends_with(".pkl");
}

Content content_of(std::string_view bytes, std::string_view path) {
  constexpr char kNewestPickle = 5;
  if (bytes.empty()) {
    return Content::kEmpty;
  }
  if (recording::is_recording(bytes)) {
    return Content::kRecording;
  }
  if (bytes.size() > 1 && bytes[0] == '\x80' && bytes[1] >= 0 && bytes[1] <= kNewestPickle) {
    return Content::kPickle;
  }
  if (base::trim(bytes.substr(0, 4096)).starts_with('{')) {
    return Content::kJson;
  }
  return is_named_like_dump(path) ? Content::kPickle : Content::kUnknown;
}

base::Result<model::JobModel> read_one(const std::string& path) {
  constexpr std::string_view kReadable =
      "this version reads recordings (.ddpd) and ddpdoctor.capture/1 (JSON)";
  const std::string bytes = TRY(read_file(path));
  switch (content_of(bytes, path)) {
    case Content::kEmpty:
      return base::failure(fmt::format("{} is empty", path), "was it written to the end?");
    case Content::kPickle:
      return base::failure(
          fmt::format(
              "{} is a pickle, such as torch's flight recorder writes: not read by this version",
              path),
          std::string(kReadable));
    case Content::kRecording:
      return recording::load(bytes, path);
    case Content::kUnknown:
      return base::failure(fmt::format("{} is nothing that ddpdoctor knows", path),
                           std::string(kReadable));
    case Content::kJson:
      break;
  }
  return imports::read_capture(bytes, path);
}

/// Files of a folder that look like evidence, by name.
base::Result<std::vector<std::string>> dumps_in(const std::string& folder) {
  std::vector<std::string> found;
  std::error_code error;
  auto entry = std::filesystem::directory_iterator(folder, error);
  for (std::size_t i = 0;
       !error && entry != std::filesystem::directory_iterator() && i < kMostFiles;
       entry.increment(error), ++i) {
    const std::string path = entry->path().string();
    if (path.ends_with(".json") || path.ends_with(".ddpd") || is_named_like_dump(path)) {
      found.push_back(path);
    }
  }
  if (error) {
    return base::failure(fmt::format("{} cannot be read: {}", folder, error.message()));
  }
  if (found.empty()) {
    return base::failure(fmt::format(
        "{} holds no dumps: no file in it is named *.json, *.ddpd, *.pickle or *rank_N", folder));
  }
  std::sort(found.begin(), found.end());
  return found;
}

/// What was read so far, and what could not be.
struct Reading {
  std::optional<model::JobModel> job;
  std::vector<base::Error> failures;

  void take(base::Result<model::JobModel> read) {
    if (!read) {
      failures.push_back(std::move(read.error()));
    } else if (job) {
      imports::merge(*job, std::move(*read));
    } else {
      job = std::move(*read);
    }
  }
};

}  // namespace

base::Result<model::JobModel> read_inputs(const std::vector<std::string>& paths) {
  Reading reading;
  for (const std::string& path : paths) {
    std::error_code error;
    if (!std::filesystem::is_directory(path, error)) {
      reading.take(read_one(path));
      continue;
    }
    if (monitor::holds_rings(path)) {
      reading.take(monitor::job_of_spool(path));
      continue;
    }
    const auto files = dumps_in(path);
    if (!files) {
      reading.failures.push_back(files.error());
      continue;
    }
    for (const std::string& file : *files) {
      reading.take(read_one(file));
    }
  }
  if (!reading.job) {
    base::Error first = reading.failures.front();
    if (reading.failures.size() > 1) {
      first.what += fmt::format(" (and {} more that cannot be used)", reading.failures.size() - 1);
    }
    return tl::make_unexpected(std::move(first));
  }
  for (const base::Error& failure : reading.failures) {
    reading.job->coverage.warnings.push_back(failure.what);
  }
  return std::move(*reading.job);
}

}  // namespace ddpdoctor::cli

// SPDX-License-Identifier: Apache-2.0
#include <archive.h>
#include <archive_entry.h>
#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>
#include <unistd.h>

#include <fmt/format.h>

#include "base/text.h"
#include "base/unique_fd.h"
#include "cli/unpack.h"
#include "cli/unpacked_inputs.h"

namespace ddpdoctor::cli {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kBlock = std::size_t{256} << 10U;
constexpr std::size_t kLongestName = 255;
constexpr std::size_t kLongestReason = 160;

struct Closed {
  void operator()(archive* reader) const {
    ::archive_read_free(reader);
  }
};
using Reader = std::unique_ptr<archive, Closed>;

auto damaged(archive* reader) {
  const char* const said = ::archive_error_string(reader);
  return base::failure(fmt::format(
      "it is damaged or encrypted ({})",
      base::elide(base::printable(said == nullptr ? "no reason is given" : said), kLongestReason)));
}

/// The name relative to the folder; nothing for an invalid name or one that points elsewhere.
std::optional<fs::path> safe_name(const char* name, int deepest) {
  if (name == nullptr) {
    return std::nullopt;
  }
  fs::path out;
  int depth = 0;
  for (const std::string_view part : base::split(name, '/')) {
    if (part.empty() || part == ".") {
      continue;
    }
    if (part == ".." || part.size() > kLongestName || ++depth > deepest) {
      return std::nullopt;
    }
    out /= part;
  }
  return out.empty() ? std::nullopt : std::optional(out);
}

/// "job.log" of "job.log.gz": the inner name of a file that is only compressed.
fs::path name_without_ending(const std::string& archive) {
  const fs::path name = fs::path(archive).filename();
  return name.has_stem() ? name.stem() : name;
}

base::Result<void> write_entry(archive* reader, const fs::path& target, std::uint64_t most,
                               std::uint64_t& written) {
  std::error_code error;
  fs::create_directories(target.parent_path(), error);
  const base::UniqueFd to(
      error ? -1
            : ::open(target.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!to) {
    return {};  // the name already exists, as file or folder: the first one wins
  }
  std::array<char, kBlock> block{};
  for (;;) {
    const la_ssize_t got = ::archive_read_data(reader, block.data(), block.size());
    if (got == 0) {
      return {};
    }
    if (got < 0) {
      return damaged(reader);
    }
    written += static_cast<std::uint64_t>(got);
    if (written > most) {
      return base::failure("it holds more than ddpdoctor unpacks (2 GiB)");
    }
    std::size_t put = 0;
    while (put < static_cast<std::size_t>(got)) {
      const ssize_t now =
          ::write(to.get(), block.data() + put, static_cast<std::size_t>(got) - put);
      if (now < 0 && errno != EINTR) {
        // NOLINTNEXTLINE(concurrency-mt-unsafe): glibc's is per thread
        return base::failure(std::strerror(errno));
      }
      put += now > 0 ? static_cast<std::size_t>(now) : 0;
    }
  }
}

Reader new_reader() {
  Reader reader(::archive_read_new());
  if (reader) {
    for (const auto support : {archive_read_support_filter_gzip, archive_read_support_filter_zstd,
                               archive_read_support_filter_xz, archive_read_support_filter_bzip2,
                               archive_read_support_format_tar, archive_read_support_format_zip,
                               archive_read_support_format_raw}) {
      support(reader.get());
    }
  }
  return reader;
}

}  // namespace

bool can_unpack() {
  return true;
}

base::Result<Unpacked> unpack(const std::string& path, const std::string& folder,
                              const UnpackBounds& bounds) {
  const Reader reader = new_reader();
  if (!reader || ::archive_read_open_filename(reader.get(), path.c_str(), kBlock) != ARCHIVE_OK) {
    return damaged(reader.get());
  }
  Unpacked out;
  for (archive_entry* entry = nullptr;;) {
    const int next = ::archive_read_next_header(reader.get(), &entry);
    if (next == ARCHIVE_EOF) {
      return out;
    }
    if (next != ARCHIVE_OK && next != ARCHIVE_WARN) {
      return damaged(reader.get());
    }
    if (::archive_filter_count(reader.get()) - 1 > bounds.filters) {
      return base::failure("it is compressed too many times");
    }
    if (out.files >= bounds.files) {
      return base::failure("it holds more files than ddpdoctor unpacks (20,000)");
    }
    const bool raw = ::archive_format(reader.get()) == ARCHIVE_FORMAT_RAW;
    if (raw && ::archive_filter_count(reader.get()) < 2) {  // bytes without any compression
      return base::failure("it is damaged");
    }
    const auto name = raw ? std::optional(name_without_ending(path))
                          : safe_name(::archive_entry_pathname(entry), bounds.folders);
    const bool regular = raw || (::archive_entry_filetype(entry) == AE_IFREG &&
                                 ::archive_entry_hardlink(entry) == nullptr);
    ++out.files;
    if (!name || !regular) {
      continue;
    }
    if (const auto written =
            write_entry(reader.get(), fs::path(folder) / *name, bounds.bytes, out.bytes);
        !written) {
      return tl::make_unexpected(written.error());
    }
  }
}

}  // namespace ddpdoctor::cli

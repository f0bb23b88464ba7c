// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/told_shm_size.h"

#include <charconv>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/text.h"

namespace ddpdoctor::detectors {
namespace {

constexpr std::string_view kShmMount = "/dev/shm";
constexpr std::size_t kLongestShmLine = 400;
constexpr std::size_t kCellsOfDf = 6;  // file system, size, used, free, share, mount point

std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end != text.data() ? std::optional(out) : std::nullopt;
}

/// "64M", "1.0G", "65536" of `df -h` and `df`, which counts in KiB.
std::optional<std::int64_t> size_in_df(std::string_view cell) {
  constexpr std::string_view kUnits = "KMGT";
  constexpr std::int64_t kMost = std::int64_t{1} << 50;
  const auto number = whole_number(cell);
  const std::size_t unit = cell.empty() ? kUnits.npos : kUnits.find(cell.back());
  const std::size_t bits = 10 * (unit == kUnits.npos ? 1 : unit + 1);
  return number && *number > 0 && *number <= kMost >> bits ? std::optional(*number << bits)
                                                           : std::nullopt;
}

std::vector<std::string_view> cells_of(std::string_view line) {
  std::vector<std::string_view> out;
  for (const std::string_view word : base::split(line, ' ')) {
    if (!word.empty()) {
      out.push_back(word);
    }
  }
  return out;
}

/// "shm              64M   64M     0 100% /dev/shm".
std::optional<std::int64_t> in_row_of_df(std::string_view line) {
  const auto cells = cells_of(line);
  const bool is_row =
      cells.size() == kCellsOfDf && cells.back() == kShmMount && cells[4].ends_with('%');
  return is_row ? size_in_df(cells[1]) : std::nullopt;
}

/// "/dev/shm has only 67108864 bytes available" of Ray.
std::optional<std::int64_t> in_words_of_ray(std::string_view line) {
  constexpr std::string_view kOnly = "/dev/shm has only ";
  const std::size_t at = line.find(kOnly);
  const std::string_view rest =
      at == line.npos ? std::string_view() : line.substr(at + kOnly.size());
  return rest.find(" bytes available") == rest.npos ? std::nullopt : whole_number(rest);
}

}  // namespace

std::optional<ToldShmSize> told_shm_size(const model::JobModel& job) {
  for (const model::Log& log : job.logs) {
    if (log.text.find(kShmMount) == std::string::npos) {
      continue;
    }
    for (const std::string_view line : base::split(log.text, '\n')) {
      if (line.size() > 64 * kLongestShmLine || line.find(kShmMount) == line.npos) {
        continue;
      }
      const auto row = in_row_of_df(base::trim(line));
      if (const auto bytes = row ? row : in_words_of_ray(line)) {
        return ToldShmSize{.bytes = *bytes,
                           .line = base::elide(base::printable(base::trim(line)), kLongestShmLine)};
      }
    }
  }
  return std::nullopt;
}

}  // namespace ddpdoctor::detectors

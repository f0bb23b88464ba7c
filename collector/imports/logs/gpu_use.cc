// SPDX-License-Identifier: Apache-2.0
#include "collector/imports/logs/gpu_use.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>

#include "base/lower.h"
#include "base/text.h"
#include "collector/imports/stack_dumps/stack_text.h"
#include "collector/model/told_by_logs.h"

namespace ddpdoctor::imports {
namespace {

using std::string_view;

constexpr std::int64_t kMostGpus = 1024;
constexpr std::int64_t kWhole = 100;  // percent
constexpr std::size_t kLongestGpuLine = 400;

/// "100%", "98 %" at the beginning; nothing otherwise.
std::optional<std::int64_t> percent_at(string_view text) {
  text = base::trim(text);
  const auto number = take_number(text, kWhole);
  return number && base::trim(text).starts_with('%') ? number : std::nullopt;
}

/// "| 30%   47C    P2   101W / 450W |    848MiB / 24564MiB |    100%      Default |".
std::optional<std::int64_t> in_table(string_view line) {
  constexpr string_view kMemory = "MiB |";
  const std::size_t at = line.find(kMemory);
  const bool row = line.starts_with('|') && at != line.npos && line.find("MiB /") < at;
  return row ? percent_at(line.substr(at + kMemory.size())) : std::nullopt;
}

struct Use {
  std::int64_t gpu = 0;
  std::int64_t percent = 0;
};

/// "0, 100 %, 118.21 W" of --query-gpu=index,utilization.gpu.
std::optional<Use> in_csv(string_view line) {
  const auto gpu = take_number(line, kMostGpus);
  if (!gpu || !take_prefix(line, ",")) {
    return std::nullopt;
  }
  const auto percent = percent_at(line);
  return percent ? std::optional(Use{.gpu = *gpu, .percent = *percent}) : std::nullopt;
}

/// The columns of a table of comma-separated values.
struct Columns {
  std::optional<std::size_t> use;
  std::optional<std::size_t> gpu;
  std::size_t all = 0;
};

/// "timestamp, name, utilization.gpu [%], power.draw [W]": the heading of --query-gpu.
std::optional<Columns> query_heading(string_view line) {
  Columns out;
  const auto names = base::split(line, ',');
  for (std::size_t i = 0; i < names.size(); ++i) {
    const string_view name = base::trim(names[i]);
    out.use = name.starts_with("utilization.gpu") ? std::optional(i) : out.use;
    out.gpu = name == "index" ? std::optional(i) : out.gpu;
  }
  out.all = names.size();
  return out.use && names.size() > 1 ? std::optional(out) : std::nullopt;
}

/// "2026/06/19 02:41:17.871, NVIDIA GB10, 96 %, 15.21 W" below such a heading; `next`: the index of
/// a GPU that has none in its row.
std::optional<Use> in_row(string_view line, const Columns& columns, std::int64_t next) {
  const auto values = base::split(line, ',');
  const auto percent = values.size() == columns.all ? percent_at(values[*columns.use])
                                                    : std::optional<std::int64_t>();
  std::int64_t gpu = next;
  if (columns.gpu && percent) {
    string_view index = base::trim(values[*columns.gpu]);
    gpu = take_number(index, kMostGpus).value_or(next);
  }
  return percent ? std::optional(Use{.gpu = gpu, .percent = *percent}) : std::nullopt;
}

/// "GPU0 98% 131W, GPU1 100% 128W" in a line in small letters.
std::map<std::int64_t, std::int64_t> named_in(string_view line) {
  constexpr string_view kGpu = "gpu";
  std::map<std::int64_t, std::int64_t> out;
  for (std::size_t at = line.find(kGpu); at != line.npos; at = line.find(kGpu, at + 1)) {
    string_view rest = base::trim(line.substr(at + kGpu.size()));
    const auto gpu = take_number(rest, kMostGpus);
    take_prefix(rest, ":");
    if (const auto percent = gpu ? percent_at(rest) : std::nullopt) {
      out[*gpu] = *percent;
    }
  }
  return out;
}

/// The first place of any of them; npos if there is none.
std::size_t first_of(string_view line, const std::array<string_view, 2>& parts) {
  return std::min(line.find(parts[0]), line.find(parts[1]));
}

/// "all 4 GPUs at 100 %", "both gpus 100%", "GPU 0 and 1 both sit at 100 %": the sentence of a
/// person, in small letters.
std::optional<std::int64_t> of_all(string_view line) {
  constexpr std::array<string_view, 2> kAll = {"all ", "both "};
  constexpr std::array<string_view, 2> kBusy = {"100%", "100 %"};
  const std::size_t all = first_of(line, kAll);
  const std::size_t busy = first_of(line, kBusy);
  const bool of_gpus = line.find("gpu") < busy && all < busy && busy != line.npos;
  const bool bar = line.find('|') != line.npos;
  return of_gpus && !bar ? std::optional(kWhole) : std::nullopt;
}

}  // namespace

void read_gpu_use(std::span<const string_view> lines, model::JobModel& job) {
  std::map<std::int64_t, std::int64_t> use;
  std::int64_t next = 0;  // a row of nvidia-smi's table has its index in the line above
  std::optional<Columns> columns;
  for (string_view line : lines) {
    line = base::trim(line);
    if (const auto found = query_heading(line)) {
      columns = found;
      continue;
    }
    if (const auto row = columns ? in_row(line, *columns, next) : std::nullopt) {
      use[row->gpu] = row->percent;
      next = std::max(next, row->gpu + 1);
      continue;
    }
    if (line.size() > kLongestGpuLine || line.find('%') == line.npos) {
      next = line.find("NVIDIA-SMI") != line.npos ? 0 : next;
      continue;
    }
    if (const auto percent = in_table(line)) {
      use[next++] = *percent;
    } else if (const auto one = in_csv(line)) {
      use[one->gpu] = one->percent;
    } else {
      const std::string small = base::lower(line);
      for (const auto& [gpu, share] : named_in(small)) {
        use[gpu] = share;
      }
      if (const auto share = of_all(small)) {
        use[0] = *share;
      }
    }
  }
  for (const auto& [gpu, percent] : use) {
    job.facts.push_back({.rank = {},
                         .pid = {},
                         .kind = std::string(model::kGpuUse),
                         .fields = {{"gpu", gpu}, {"percent", percent}}});
  }
}

}  // namespace ddpdoctor::imports

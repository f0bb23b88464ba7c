// SPDX-License-Identifier: Apache-2.0
#include "collector/imports/logs/tee_labels.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/imports/capture/parts.h"
#include "collector/imports/stack_dumps/stack_text.h"
#include "collector/model/log_lines.h"

namespace ddpdoctor::imports {
namespace {

constexpr std::string_view kTee = "[default";

/// "[default4]:[rank12]: text".
struct TeeLine {
  std::int64_t local = 0;
  std::string_view rest;
  std::optional<model::Rank> rank;  // that the rest names
};

std::optional<TeeLine> tee_line(std::string_view line) {
  std::string_view rest = line;
  const auto local = take_prefix(rest, kTee) ? take_number(rest, kMaxRank) : std::nullopt;
  if (!local || !take_prefix(rest, "]:")) {
    return std::nullopt;
  }
  return TeeLine{.local = *local,
                 .rest = rest,
                 .rank = model::read_log_line(rest.substr(0, kLongestLogLine)).rank};
}

/// The rank of local rank 0; nullopt if no line tells it, or two lines differ.
std::optional<std::int64_t> first_rank(const std::vector<std::string_view>& lines) {
  std::optional<std::int64_t> first;
  for (const std::string_view line : lines) {
    const auto tee = tee_line(line);
    if (!tee || !tee->rank) {
      continue;
    }
    const std::int64_t here = *tee->rank - tee->local;
    if (here < 0 || first.value_or(here) != here) {
      return std::nullopt;
    }
    first = here;
  }
  return first;
}

}  // namespace

std::optional<std::string> with_tee_as_ranks(std::string_view text) {
  if (text.find(kTee) == text.npos) {
    return std::nullopt;
  }
  const auto lines = base::split(text, '\n');
  const auto first = first_rank(lines);
  if (first.value_or(0) == 0) {
    return std::nullopt;
  }
  std::string out;
  out.reserve(text.size());
  for (const std::string_view line : lines) {
    const auto tee = tee_line(line);
    if (tee && !tee->rank) {
      out += fmt::format("[rank{}]: {}\n", tee->local + *first, tee->rest);
    } else {
      out += tee ? tee->rest : line;
      out += '\n';
    }
  }
  out.pop_back();
  return out;
}

}  // namespace ddpdoctor::imports

// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/paths/mpi_source.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/lower.h"
#include "base/text.h"
#include "base/word.h"
#include "collector/detectors/paths/source_blocks.h"
#include "collector/model/questions.h"
#include "collector/program/origin/origin.h"

namespace ddpdoctor::detectors {
namespace {

/// The name that ends directly before `at`, skipping spaces.
std::string_view name_before(std::string_view text, std::size_t at) {
  while (at > 0 && text[at - 1] == ' ') {
    --at;
  }
  std::size_t first = at;
  while (first > 0 && (base::is_word(text[first - 1]) || text[first - 1] == '.')) {
    --first;
  }
  return text.substr(first, at - first);
}

/// "me" of `&me`, `ctx->me`, `self.me`.
std::string_view bare_name(std::string_view written) {
  std::size_t first = written.size();
  while (first > 0 && base::is_word(written[first - 1])) {
    --first;
  }
  return written.substr(first);
}

std::string last_argument(std::string_view call);

/// `MPI_Comm_rank(comm, &name)` sets this name in any known C source, or a Python file computes it
/// from the rank.
bool is_rank(const model::JobModel& job, const model::CallSite& site, std::string_view name) {
  const auto& here = lines_of(job, site.file);
  if (site.file.ends_with(".py")) {
    return program::origin_of(name, {.text = &here, .line = site.line}, job.sources).source ==
           program::Source::kRank;
  }
  constexpr std::string_view kAsks = "MPI_Comm_rank";
  for (const auto& [file, lines] : job.sources) {
    for (const auto& [number, text] : lines) {
      const std::size_t at = text.find(kAsks);
      if (at != std::string::npos &&
          bare_name(last_argument(text.substr(at + kAsks.size()))) == bare_name(name)) {
        return true;
      }
    }
  }
  return false;
}

struct RankComparison {
  std::string_view name;
  RankTest test;
  std::string_view rest;  // the text after the number
};

/// The comparison with == or != whose operator begins at `sign`.
std::optional<RankComparison> comparison_at(std::string_view text, std::size_t sign) {
  if (sign + 2 >= text.size() || text[sign + 1] != '=') {
    return std::nullopt;
  }
  std::string_view after = text.substr(sign + 2);
  after.remove_prefix(std::min(after.find_first_not_of(' '), after.size()));
  RankComparison found{
      .name = name_before(text, sign), .test = {.rank = 0, .equal = text[sign] == '='}, .rest = {}};
  const auto [end, error] =
      std::from_chars(after.data(), after.data() + after.size(), found.test.rank);
  found.rest = after.substr(static_cast<std::size_t>(end - after.data()));
  const bool whole = found.rest.empty() || !base::is_word(found.rest.front());
  return error == std::errc() && whole && !found.name.empty() ? std::optional(found) : std::nullopt;
}

/// All comparisons with a number after the word `if`.
std::vector<RankComparison> comparisons(std::string_view text) {
  const std::size_t condition = text.find("if");
  const bool alone = condition != std::string_view::npos &&
                     (condition == 0 || !base::is_word(text[condition - 1])) &&
                     condition + 2 < text.size() && !base::is_word(text[condition + 2]);
  std::vector<RankComparison> out;
  for (std::size_t at = alone ? condition : text.size(); at < text.size(); ++at) {
    if (text[at] == '=' || text[at] == '!') {
      if (const auto found = comparison_at(text, at)) {
        out.push_back(*found);
      }
      at += text.substr(at).starts_with("==") || text.substr(at).starts_with("!=") ? 1 : 0;
    }
  }
  return out;
}

bool has_more_conditions(std::string_view text) {
  return text.find("&&") != text.npos || text.find("||") != text.npos ||
         text.find(" and ") != text.npos || text.find(" or ") != text.npos;
}

/// The statement leaves the block or function: the following code is skipped.
bool leaves(std::string_view text) {
  const std::string_view trimmed = base::trim(text);
  constexpr std::array<std::string_view, 3> kWords = {"return", "continue", "break"};
  return std::any_of(kWords.begin(), kWords.end(), [&](std::string_view word) {
    const std::size_t at = trimmed.find(word);
    return at != std::string_view::npos && (at == 0 || !base::is_word(trimmed[at - 1])) &&
           (at + word.size() == trimmed.size() || !base::is_word(trimmed[at + word.size()]));
  });
}

/// The rank excluded by the test on this line, if the test excludes exactly one.
std::optional<model::Rank> sent_away_at(const model::JobModel& job, const model::CallSite& site,
                                        int line) {
  const auto text = model::source_line(job, site.file, line);
  if (!text) {
    return std::nullopt;
  }
  const auto next = model::source_line(job, site.file, line + 1);
  const bool goes = leaves(*text) || (next && line + 1 < site.line && leaves(*next));
  const bool negated = text->find("!(") != text->npos || text->find("if not ") != text->npos;
  for (const RankComparison& one : comparisons(*text)) {
    const bool equal = one.test.equal != negated;
    const bool guards = line >= site.line - 1 && !equal;
    if (is_rank(job, site, one.name) && ((equal && goes) || (guards && !goes))) {
      return one.test.rank;
    }
  }
  return std::nullopt;
}

bool begins_function(std::string_view text) {
  return base::trim(text).starts_with("def ") || text.starts_with("}") || text.starts_with("{");
}

/// "MPI_Allreduce(&a, &b, 1, MPI_INT, MPI_SUM, half);" → "half".
std::string last_argument(std::string_view call) {
  int depth = 0;
  std::size_t first = 0;
  for (std::size_t i = 0; i < call.size(); ++i) {
    if (call[i] == '(') {
      first = depth++ == 0 ? i + 1 : first;
    } else if (call[i] == ',' && depth == 1) {
      first = i + 1;
    } else if (call[i] == ')' && --depth == 0) {
      return std::string(base::trim(call.substr(first, i - first)));
    }
  }
  return {};
}

constexpr std::array<std::string_view, 13> kCollectives = {
    "barrier",  "bcast",     "reduce",     "allreduce", "gather",         "gatherv", "scatter",
    "scatterv", "allgather", "allgatherv", "alltoall",  "reduce_scatter", "scan"};

bool is_collective(std::string_view name) {
  const std::string lower = base::lower(name);
  return std::find(kCollectives.begin(), kCollectives.end(), lower) != kCollectives.end();
}

}  // namespace

std::optional<RankTest> rank_test(std::string_view text) {
  const std::vector<RankComparison> all = comparisons(text);
  return all.size() == 1 && !has_more_conditions(text) ? std::optional(all.front().test)
                                                       : std::nullopt;
}

std::optional<RankTest> test_of_line(const model::JobModel& job, const model::CallSite& site) {
  for (const int line : {site.line, site.line - 1}) {
    const auto text = model::source_line(job, site.file, line);
    if (const auto found = text ? rank_test(*text) : std::nullopt) {
      return found;
    }
    if (text && text->find('}') != std::string_view::npos) {
      break;  // the blocks above are closed
    }
  }
  return std::nullopt;
}

std::optional<model::Rank> sent_away(const model::JobModel& job, const Path& path) {
  constexpr int kFar = 8;            // lines
  constexpr std::size_t kDepth = 3;  // functions
  for (std::size_t i = 0; i < path.size() && i < kDepth; ++i) {
    for (int line = path[i].line; line >= path[i].line - kFar && line > 0; --line) {
      if (const auto rank = sent_away_at(job, path[i], line)) {
        return rank;
      }
      const auto text = model::source_line(job, path[i].file, line);
      if (!text || (line < path[i].line && begins_function(*text))) {
        break;
      }
    }
  }
  return std::nullopt;
}

std::string communicator_at(const model::JobModel& job, const model::CallSite& site) {
  const auto text = model::source_line(job, site.file, site.line);
  if (!text) {
    return {};
  }
  for (std::size_t open = text->find('('); open != std::string_view::npos;
       open = text->find('(', open + 1)) {
    const std::string_view name = name_before(*text, open);
    const std::size_t dot = name.rfind('.');
    if (dot != std::string_view::npos && dot > 0 && is_collective(name.substr(dot + 1))) {
      return std::string(name.substr(0, dot));
    }
    const std::string_view function = name.starts_with("PMPI_") ? name.substr(1) : name;
    if (function.starts_with("MPI_") && is_collective(function.substr(4))) {
      return last_argument(text->substr(open));
    }
  }
  return {};
}

}  // namespace ddpdoctor::detectors

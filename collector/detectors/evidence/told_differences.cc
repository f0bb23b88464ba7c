// SPDX-License-Identifier: Apache-2.0
// The texts are those of accelerate's debug mode (0.20 to 1.12), the _parse_losses of OpenMMLab,
// assert_ints_same_as_other_ranks of DeepSpeed, _check_order of torch's FSDP, and
// verify_params_across_processes of torch's DDP.
#include "collector/detectors/evidence/told_differences.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/known_exceptions.h"
#include "collector/detectors/evidence/traceback_lines.h"
#include "collector/detectors/evidence/tracebacks.h"
#include "collector/detectors/evidence/wording.h"

namespace ddpdoctor::detectors {
namespace {

constexpr std::size_t kMostLinesBelow = 4096;  // lines below the exception
constexpr std::size_t kLongestValue = 400;
constexpr std::size_t kLongestDifference = 240;

using Values = std::map<model::Rank, std::string>;

/// A rank's number behind `word`, and the text behind the number.
struct Numbered {
  model::Rank rank = 0;
  std::string_view rest;
};

std::optional<Numbered> numbered(std::string_view text, std::string_view word) {
  const std::size_t at = text.find(word);
  const std::string_view behind =
      at == text.npos ? std::string_view() : text.substr(at + word.size());
  const auto rank = leading_number(behind);
  const std::size_t end = behind.find_first_not_of("0123456789");
  return rank ? std::optional(
                    Numbered{.rank = *rank, .rest = behind.substr(std::min(end, behind.size()))})
              : std::nullopt;
}

void keep(model::Rank rank, std::string_view value, Values& values) {
  values.try_emplace(rank, base::elide(base::printable(base::trim(value)), kLongestValue));
}

/// "Operation: `accelerate.utils.operations.gather`", "  - Process 0: [1024]".
void read_shapes(const LogStream& stream, std::size_t index, ToldDifference& out) {
  constexpr std::string_view kOperation = "Operation: `";
  for (std::size_t i = index + 1; i < std::min(stream.size(), index + kMostLinesBelow); ++i) {
    const std::string_view line = base::trim(stream[i].text);
    if (line.starts_with(kOperation) && out.operation.empty()) {
      const std::string_view name = line.substr(kOperation.size(), line.size() - kOperation.size());
      const std::string_view whole = name.substr(0, name.find('`'));
      out.operation = whole.substr(whole.rfind('.') + 1);
    } else if (line.starts_with("- Process ")) {
      const auto one = numbered(line, "- Process ");
      if (one && one->rest.starts_with(": ")) {
        keep(one->rank, one->rest.substr(2), out.values);
      }
    } else if (!line.empty() && line != "Input shapes:") {
      break;
    }
  }
}

/// "rank 1 len(log_vars): 6 keys: loss_cls,acc,loss" on the line below.
void read_losses(const LogStream& stream, std::size_t index, ToldDifference& out) {
  constexpr std::string_view kKeys = " keys: ";
  for (std::size_t i = index; i < std::min(stream.size(), index + 3); ++i) {
    const std::string_view line = stream[i].text;
    const std::size_t keys = line.find(kKeys);
    const auto one = numbered(line, "rank ");
    if (one && one->rest.starts_with(" len(log_vars): ") && keys != line.npos) {
      keep(one->rank, line.substr(keys + kKeys.size()), out.values);
    }
  }
}

/// "disagreement between rank0 and rank3: rank0: [4, 5], rank3: [4, 6]".
void read_ints(const LogStream& stream, std::size_t index, ToldDifference& out) {
  std::string_view rest = stream[index].text;
  rest.remove_prefix(std::min(rest.find(": rank0: "), rest.size()));
  while (const auto one = numbered(rest, "rank")) {
    const std::size_t end = one->rest.find(']');
    if (!one->rest.starts_with(": [") || end == one->rest.npos) {
      break;
    }
    keep(one->rank, one->rest.substr(2, end - 1), out.values);
    rest = one->rest.substr(end);
  }
}

/// "rank 0 is all-gathering parameters for ['a'] while rank 1 is all-gathering 2 parameters".
void read_order(const LogStream& stream, std::size_t index, ToldDifference& out) {
  constexpr std::string_view kGathers = " is all-gathering ";
  std::string_view rest = stream[index].text;
  while (const auto one = numbered(rest, "rank ")) {
    const std::string_view value =
        one->rest.starts_with(kGathers) ? one->rest.substr(kGathers.size()) : std::string_view();
    const std::size_t next = value.find(" while rank ");
    if (value.empty()) {
      break;
    }
    keep(one->rank, value.substr(0, next), out.values);
    rest = next == value.npos ? std::string_view() : value.substr(next);
  }
}

/// "Rank 1 has 400 params, while rank 0 has inconsistent 399 params."
void read_counts(const LogStream& stream, std::size_t index, ToldDifference& out) {
  constexpr std::string_view kHas = " has ";
  constexpr std::string_view kInconsistent = "inconsistent ";
  std::string_view rest = stream[index].text;
  for (const std::string_view word : {"Rank ", "while rank "}) {
    const auto one = numbered(rest, word);
    if (!one || !one->rest.starts_with(kHas)) {
      return;
    }
    std::string_view value = one->rest.substr(kHas.size());
    if (value.starts_with(kInconsistent)) {
      value.remove_prefix(kInconsistent.size());
    }
    keep(one->rank, value.substr(0, value.find(' ')), out.values);
    rest = one->rest;
  }
}

struct Comparison {
  std::string_view kind;
  std::string_view pattern;
  // Reads the values into `out`; null if the message has those of one rank only.
  void (*read)(const LogStream& stream, std::size_t index, ToldDifference& out);
};

constexpr std::array<Comparison, 7> kComparisons = {
    {{"ddp-models-differ", "DDP expects same model across all ranks", read_counts},
     {"ddp-models-differ", "appears not to match sizes of the same param", nullptr},
     {"ddp-models-differ", "appears not to match strides of the same param", nullptr},
     {"mismatched-shape", "Cannot apply desired operation due to shape mismatches", read_shapes},
     {"divergent-branch", "loss log variables are different across GPUs", read_losses},
     {"skipped-sharded-module", "disagreement between rank0 and rank", read_ints},
     {"skipped-sharded-module", "Forward order differs across ranks: rank ", read_order}}};

bool raises(std::string_view line, const Comparison& comparison) {
  return line.find(comparison.pattern) != line.npos && end_like(line) == EndLike::kYes;
}

std::vector<std::string_view> items(std::string_view list) {
  std::vector<std::string_view> out = base::split(list, ',');
  std::transform(out.begin(), out.end(), out.begin(), base::trim);
  return out;
}

/// "a, b and c" of those that the other list lacks.
std::string only_in(std::string_view list, std::string_view other) {
  std::vector<std::string_view> more = items(list);
  const std::vector<std::string_view> theirs = items(other);
  std::erase_if(more, [&theirs](std::string_view one) {
    return std::find(theirs.begin(), theirs.end(), one) != theirs.end();
  });
  std::string out;
  for (std::size_t i = 0; i < more.size(); ++i) {
    out += i == 0 ? "" : i + 1 == more.size() ? " and " : ", ";
    out += more[i];
  }
  return out;
}

}  // namespace

ToldDifference told_difference(const model::JobModel& job, std::string_view kind) {
  ToldDifference out;
  if (job.logs.empty()) {
    return out;
  }
  for (const LogStream& stream : log_streams(job)) {
    for (std::size_t i = 0; i < stream.size(); ++i) {
      const auto* const comparison = std::find_if(
          kComparisons.begin(), kComparisons.end(),
          [&](const Comparison& one) { return one.kind == kind && raises(stream[i].text, one); });
      if (comparison == kComparisons.end()) {
        continue;
      }
      if (comparison->read != nullptr) {
        comparison->read(stream, i, out);
      }
      if (stream[i].rank) {
        out.raised.insert(*stream[i].rank);
      }
      if (out.exception.empty()) {
        out.exception = base::trim(stream[i].text);
        out.place = user_place_above(stream, i);
      }
    }
  }
  return out;
}

bool tells_difference(std::string_view exception) {
  return std::any_of(kComparisons.begin(), kComparisons.end(),
                     [exception](const Comparison& one) { return raises(exception, one); });
}

std::string_view comparison_in(std::string_view line, std::string_view kind) {
  const auto* const found =
      std::find_if(kComparisons.begin(), kComparisons.end(), [&](const Comparison& one) {
        return one.kind == kind && line.find(one.pattern) != line.npos;
      });
  return found == kComparisons.end() ? std::string_view() : found->pattern;
}

ToldSides sides_of(const ToldDifference& difference) {
  const std::vector<Camp> all = camps(difference.values);
  if (all.size() < 2) {
    return {};
  }
  ToldSides out{.odd = all[1].ranks,
                .rest = all[0].ranks,
                .odd_value = all[1].key,
                .rest_value = all[0].key,
                .majority = has_majority(all)};
  return out;
}

Finding finding_of(const graph::Examination& examination, const ToldDifference& difference,
                   const ToldSides& sides, std::string_view kind) {
  Finding finding;
  finding.kind = kind;
  finding.confidence = outlived(examination, std::nullopt) ? Confidence::kPossible
                       : difference.place.known()          ? Confidence::kCertain
                                                           : Confidence::kLikely;
  if (sides.majority) {
    finding.culprits = sides.odd;
  }
  if (difference.place.known()) {
    finding.locations.push_back(location(
        difference.place, difference.raised,
        difference.raised.empty()
            ? std::string("the ranks were compared here, and differ")
            : fmt::format("{} compared the ranks here, which differ", said(difference.raised))));
  }
  finding.evidence.push_back(
      {.rank = std::nullopt,
       .text = "log: " + base::elide(base::printable(difference.exception), kLongestDifference)});
  constexpr std::size_t kMostQuoted = 2;
  for (const Camp& camp : camps(difference.values)) {
    if (finding.evidence.size() <= kMostQuoted) {
      finding.evidence.push_back({.rank = std::nullopt,
                                  .text = fmt::format("log: {}: {}", said(camp.ranks),
                                                      base::elide(camp.key, kLongestDifference))});
    }
  }
  return finding;
}

std::string how_lists_differ(std::string_view list, std::string_view other, bool many) {
  const std::string lacks = only_in(other, list);
  const std::string more = only_in(list, other);
  std::string out = lacks.empty() ? "" : fmt::format("{} {}", many ? "lack" : "lacks", lacks);
  if (!more.empty()) {
    out += fmt::format("{}{} {} in addition", lacks.empty() ? "" : " and ", many ? "have" : "has",
                       more);
  }
  return out.empty() ? "has them in a different order" : out;
}

}  // namespace ddpdoctor::detectors

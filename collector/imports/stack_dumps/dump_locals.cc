// SPDX-License-Identifier: Apache-2.0
#include "collector/imports/stack_dumps/dump_locals.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.h"
#include "collector/model/questions.h"

namespace ddpdoctor::imports {
namespace {

constexpr std::size_t kMostLocals = 32;     // locals of one frame
constexpr std::size_t kLongestValue = 200;  // characters of a local

/// "rank: 3" in the user's own frames; the first argument of a function started by mp.spawn is its
/// index.
void claim_rank(const model::Frame& frame, std::string_view name, std::string_view value,
                RankClaim& claim) {
  constexpr std::array<std::pair<std::string_view, int>, 4> kNames = {
      {{"global_rank", 4}, {"rank", 3}, {"local_rank", 2}, {"i", 1}}};
  const auto* const known = std::find_if(kNames.begin(), kNames.end(),
                                         [name](const auto& entry) { return entry.first == name; });
  if (known == kNames.end() || known->second < claim.weight) {
    return;
  }
  const bool spawned = frame.function == "_wrap" && model::is_torch_file(frame.file);
  const bool own = model::is_user_file(frame.file) && name != "i";
  const auto rank = number_of(value, model::kMaxWorldSize - 1);
  if (rank && (spawned || own)) {
    claim = {.rank = static_cast<model::Rank>(*rank), .weight = known->second};
  }
}

std::string_view local_of(const model::Frame& frame, std::string_view name) {
  const auto found = std::find_if(frame.locals.begin(), frame.locals.end(),
                                  [name](const auto& local) { return local.first == name; });
  return found == frame.locals.end() ? std::string_view() : std::string_view(found->second);
}

/// Where torch makes a group, group_rank is this process's index in the list `ranks`.
void claim_member(const model::Frame& frame, RankClaim& claim) {
  constexpr int kWeight = 5;
  std::string_view ranks = local_of(frame, "ranks");
  const auto index = number_of(local_of(frame, "group_rank"), model::kMaxWorldSize - 1);
  if (!index || claim.weight >= kWeight || !take_prefix(ranks, "[") || !ranks.ends_with(']')) {
    return;
  }
  const auto members = base::split(ranks.substr(0, ranks.size() - 1), ',');
  const auto at = static_cast<std::size_t>(*index);
  const auto rank = at < members.size()
                        ? number_of(base::trim(members[at]), model::kMaxWorldSize - 1)
                        : std::nullopt;
  if (rank) {
    claim = {.rank = static_cast<model::Rank>(*rank), .weight = kWeight};
  }
}

}  // namespace

void take_local(model::Frame& frame, std::string_view name, std::string_view value,
                RankClaim& claim) {
  claim_rank(frame, name, value, claim);
  if (frame.file.find("torch/distributed/") != std::string::npos &&
      frame.locals.size() < kMostLocals) {
    frame.locals.emplace_back(base::elide(name, kLongestValue), base::elide(value, kLongestValue));
    claim_member(frame, claim);
  }
}

void take_local(model::Frame& frame, std::string_view line, RankClaim& claim) {
  line = base::trim(line);
  const std::size_t colon = line.find(": ");
  if (colon != std::string_view::npos) {
    take_local(frame, line.substr(0, colon), line.substr(colon + 2), claim);
  }
}

}  // namespace ddpdoctor::imports

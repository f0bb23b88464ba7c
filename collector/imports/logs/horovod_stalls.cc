// SPDX-License-Identifier: Apache-2.0
// Three forms: before 0.13 all tensors on one line with the ranks that are ready, up to 0.17 a line
// per tensor with the ranks that are missing, then a line per missing rank with at most six
// tensors in alphabetical order. A "!" marks a rank that the inspector gives up.
#include "collector/imports/logs/horovod_stalls.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/text.h"
#include "collector/imports/capture/parts.h"
#include "collector/imports/stack_dumps/stack_text.h"
#include "collector/model/listed_ranks.h"

namespace ddpdoctor::imports {
namespace {

using model::Rank;

constexpr std::size_t kMostHorovodRanks = 70'000;
constexpr std::size_t kMostTensors = 4'096;
constexpr std::size_t kMostSides = 64;  // further ones are not compared
constexpr std::size_t kMostNames = 8;   // kept of a side

constexpr std::string_view kReady = "[ready ranks:";
constexpr std::string_view kMissing = "[missing ranks:";

/// The name before "[ready ranks": "Stalled ops:" may precede it without a space, a comma, a time.
std::string tensor_before(std::string_view text) {
  text = base::trim(text);
  text = text.substr(text.find_last_of(" \t") + 1);
  if (const std::size_t heading = text.rfind("ops:"); heading != text.npos) {
    text = text.substr(heading + 4);
  }
  constexpr std::size_t kLongestTensor = 1'024;
  return base::printable(text.substr(0, kLongestTensor));
}

}  // namespace

std::set<Rank> StalledTensors::ranks_in(std::string_view list) {
  std::set<Rank> out;
  for (const Rank rank : model::listed_ranks(list).ranks) {
    if (out.size() < kMostHorovodRanks) {
      out.insert(rank);
      largest_ = std::max(largest_, rank);
    }
  }
  return out;
}

/// "a [ready ranks: 1, 0], b [ready ranks: 0]", "a [missing ranks: 2]".
bool StalledTensors::read_tensors(std::string_view line) {
  bool any = false;
  while (!line.empty()) {
    const std::size_t ready = line.find(kReady);
    const std::size_t missing = line.find(kMissing);
    const std::size_t at = std::min(ready, missing);
    const std::size_t end = at == line.npos ? line.npos : line.find(']', at);
    if (end == line.npos) {
      break;
    }
    any = true;
    const std::string name = tensor_before(line.substr(0, at));
    const std::size_t list = at + (at == ready ? kReady : kMissing).size();
    auto& of_name = at == ready ? ready_ : missing_;
    if (!name.empty() && of_name.size() < kMostTensors) {
      of_name[name] = ranks_in(line.substr(list, end - list));
      first_ = first_.empty() ? name : first_;
    }
    line.remove_prefix(end + 1);
  }
  return any;
}

/// "3: [allreduce.a, allreduce.b ...]", "3!: [allreduce.a]".
bool StalledTensors::read_rank(std::string_view line) {
  std::string_view rest = line;
  const auto rank = take_number(rest, kMaxRank);
  if (!rank || (!take_prefix(rest, "!: [") && !take_prefix(rest, ": ["))) {
    return false;
  }
  if (by_rank_.size() >= kMostHorovodRanks) {
    return true;
  }
  largest_ = std::max(largest_, static_cast<Rank>(*rank));
  OfRank& own = by_rank_[static_cast<Rank>(*rank)];
  rest = rest.substr(0, rest.rfind(']'));
  own.more = rest.ends_with(" ...");
  rest.remove_suffix(own.more ? 4 : 0);
  for (const std::string_view name : base::split(rest, ',')) {
    const std::string tensor = tensor_before(name);
    if (!tensor.empty() && own.tensors.size() < kMostTensors) {
      first_ = first_.empty() ? tensor : first_;
      own.tensors.insert(tensor);
    }
  }
  return true;
}

bool StalledTensors::read(std::string_view line) {
  return read_tensors(line) || line.starts_with("Missing ranks") ||
         line.starts_with("Stalled ops:") || read_rank(line);
}

std::set<Rank> StalledTensors::missing(Rank last) const {
  std::set<Rank> out;
  for (const auto& [tensor, ranks] : missing_) {
    out.insert(ranks.begin(), ranks.end());
  }
  for (const auto& [rank, tensors] : by_rank_) {
    out.insert(rank);
  }
  for (const auto& [tensor, ranks] : ready_) {
    for (Rank rank = 0; rank <= last; ++rank) {
      if (!ranks.contains(rank)) {
        out.insert(rank);
      }
    }
  }
  return out;
}

std::set<std::string> StalledTensors::names() const {
  std::set<std::string> out;
  for (const auto* const table : {&ready_, &missing_}) {
    for (const auto& [tensor, ranks] : *table) {
      out.insert(tensor);
    }
  }
  for (const auto& [rank, own] : by_rank_) {
    out.insert(own.tensors.begin(), own.tensors.end());
  }
  return out;
}

StalledTensors::Has StalledTensors::has(Rank rank, const std::string& tensor) const {
  if (const auto ready = ready_.find(tensor); ready != ready_.end()) {
    return ready->second.contains(rank) ? Has::kYes : Has::kNo;
  }
  if (const auto missing = missing_.find(tensor); missing != missing_.end()) {
    return missing->second.contains(rank) ? Has::kNo : Has::kYes;
  }
  const auto own = by_rank_.find(rank);
  if (own == by_rank_.end()) {
    return Has::kYes;  // a rank that lacks a tensor has a line
  }
  if (own->second.tensors.contains(tensor)) {
    return Has::kNo;
  }
  const bool listed_up_to_here =
      !own->second.more || (!own->second.tensors.empty() && tensor < *own->second.tensors.rbegin());
  return listed_up_to_here ? Has::kYes : Has::kUnknown;
}

/// As has(), but if no other rank may have submitted a stalled tensor, this one did.
StalledTensors::Has StalledTensors::has_in_world(Rank rank, const std::string& tensor,
                                                 std::optional<Rank> last) const {
  const Has known = has(rank, tensor);
  if (known != Has::kUnknown || !last) {
    return known;
  }
  for (Rank other = 0; other <= *last; ++other) {
    if (other != rank && has(other, tensor) != Has::kNo) {
      return known;
    }
  }
  return Has::kYes;
}

std::vector<StalledSide> StalledTensors::opposed(Rank last, bool all_ranks) const {
  const auto world = all_ranks ? std::optional(last) : std::nullopt;
  const std::set<std::string> all = names();
  struct Submitted {
    std::vector<Rank> ranks;
    std::vector<std::string> yes;
    std::vector<std::string> no;
  };
  std::map<std::string, Submitted> sides;  // by what they submitted
  for (Rank rank = 0; rank <= last; ++rank) {
    std::string signature;
    for (const std::string& tensor : all) {
      signature += static_cast<char>('0' + static_cast<int>(has_in_world(rank, tensor, world)));
    }
    if (sides.size() >= kMostSides && !sides.contains(signature)) {
      continue;
    }
    Submitted& side = sides[signature];
    side.ranks.push_back(rank);
    if (side.ranks.size() == 1) {
      for (const std::string& tensor : all) {
        const Has known = has_in_world(rank, tensor, world);
        if (known != Has::kUnknown) {
          (known == Has::kYes ? side.yes : side.no).push_back(tensor);
        }
      }
    }
  }
  const auto common = [](const std::vector<std::string>& one, const std::vector<std::string>& two) {
    std::vector<std::string> out;  // both are in alphabetical order
    std::set_intersection(one.begin(), one.end(), two.begin(), two.end(), std::back_inserter(out));
    out.resize(std::min(out.size(), kMostNames));
    return out;
  };
  std::vector<StalledSide> out;
  for (const auto& [signature, side] : sides) {
    for (const auto& [other_signature, other] : sides) {
      StalledSide one{.ranks = side.ranks,
                      .submitted = common(side.yes, other.no),
                      .lacking = common(other.yes, side.no)};
      if (!one.submitted.empty() && !one.lacking.empty()) {
        out.push_back(std::move(one));
        break;
      }
    }
  }
  std::sort(out.begin(), out.end(), [](const StalledSide& one, const StalledSide& two) {
    return one.ranks.front() < two.ranks.front();
  });
  return out;
}

}  // namespace ddpdoctor::imports

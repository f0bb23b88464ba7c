// SPDX-License-Identifier: Apache-2.0
// The process groups of a dump: their names and members.
#include <algorithm>
#include <utility>

#include "collector/imports/flight_recorder/messages.h"
#include "collector/imports/flight_recorder/parts.h"
#include "collector/model/listed_ranks.h"

namespace ddpdoctor::imports {
namespace {

constexpr std::size_t kMostGroups = 16'384;  // of one rank

bool is_described(std::string_view description) {
  return !description.empty() && description != "undefined";
}

}  // namespace

Fingerprint DumpReader::members_of(const PlainDocument& document, const PlainValue& ranks) {
  Fingerprint print = fingerprint(ranks.as_text(), 7);
  const auto items = document.items(ranks);  // some versions write a list
  if (!budget_.spend(items.size() + ranks.as_text().size() / 8)) {
    return 0;
  }
  for (const PlainValue& rank : items) {
    print = fingerprint(static_cast<std::uint64_t>(rank.as_whole().value_or(-1)), print);
  }
  const auto [known, added] = vocabulary_.members.try_emplace(print);
  if (added) {
    model::ListedRanks listed = model::listed_ranks(ranks.as_text());
    std::vector<model::Rank> members =
        listed.whole ? std::move(listed.ranks) : std::vector<model::Rank>();
    for (const PlainValue& rank : items) {
      const auto number = rank.as_whole();
      if (number && *number >= 0 && *number < model::kMaxWorldSize) {
        members.push_back(static_cast<model::Rank>(*number));
      }
    }
    known->second = std::make_shared<const std::vector<model::Rank>>(std::move(members));
  }
  return known->second->empty() ? 0 : print;
}

void DumpReader::read_groups(const PlainDocument& document, Dump& out) {
  const PlainValue* config = document.find(document.root, "pg_config");
  if (config == nullptr) {
    return;
  }
  const auto items = document.items(*config);
  for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
    const std::string_view name = items[i].as_text();
    if (out.groups.size() == kMostGroups) {
      break;
    }
    if (name.empty()) {
      continue;  // gloo and DETAIL: one nameless entry for all groups
    }
    const PlainValue* ranks = document.find(items[i + 1], "ranks");
    const PlainValue* description = document.find(items[i + 1], "desc");
    const PlainValue* pair_of = document.find(items[i + 1], kPairOf);
    out.groups.push_back(
        {.name = std::string(name),
         .description = std::string(description == nullptr ? "" : description->as_text()),
         .backend = {},
         .members = ranks == nullptr ? 0 : members_of(document, *ranks),
         .pair_of = std::string(pair_of == nullptr ? "" : pair_of->as_text())});
  }
}

std::uint32_t DumpReader::group_of(const PlainDocument& document, const PlainValue& group,
                                   const PlainValue& id, Dump& out) {
  const auto parts = document.items(group);
  std::string_view name = parts.empty() ? group.as_text() : parts[0].as_text();
  const std::string_view description = parts.size() > 1 ? parts[1].as_text() : std::string_view();
  if (name.empty() && id.as_whole()) {
    // With TORCH_DISTRIBUTED_DEBUG=DETAIL names are empty; the world is the first group created.
    // Each process counts its other groups by itself, so their numbers cannot be compared.
    if (id.as_whole() != 0) {
      return kNoGroup;
    }
    name = "0";
  }
  if (name.empty()) {
    name = "0";
  }
  const auto found = std::find_if(out.groups.rbegin(), out.groups.rend(),
                                  [name](const DumpedGroup& known) { return known.name == name; });
  if (found != out.groups.rend()) {
    if (found->description.empty() && is_described(description)) {
      found->description = description;
    }
    return static_cast<std::uint32_t>(out.groups.rend() - found - 1);
  }
  out.groups.push_back({.name = std::string(name),
                        .description = is_described(description) ? std::string(description) : "",
                        .backend = {},
                        .members = 0});
  return static_cast<std::uint32_t>(out.groups.size() - 1);
}

}  // namespace ddpdoctor::imports

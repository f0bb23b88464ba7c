// SPDX-License-Identifier: Apache-2.0
#include "collector/imports/stack_dumps/headings.h"

#include <algorithm>
#include <cctype>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/imports/stack_dumps/dump_processes.h"

namespace ddpdoctor::imports {
namespace {

constexpr std::size_t kLongestHeadingLine = 100;
constexpr std::size_t kMostCopies = 1024;

bool in_heading_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0;
}

/// A word of letters and digits, and the characters between it and the word before.
struct Word {
  std::string_view between;
  std::string_view text;
};

std::vector<Word> heading_words(std::string_view line) {
  std::vector<Word> out;
  while (!line.empty()) {
    const auto begin = static_cast<std::size_t>(
        std::find_if(line.begin(), line.end(), in_heading_word) - line.begin());
    const auto end =
        static_cast<std::size_t>(std::find_if_not(line.begin() + static_cast<std::ptrdiff_t>(begin),
                                                  line.end(), in_heading_word) -
                                 line.begin());
    if (begin < end) {
      out.push_back({.between = line.substr(0, begin), .text = line.substr(begin, end - begin)});
    }
    line.remove_prefix(end);
  }
  return out;
}

/// "-", "..", "…" and "–" between two numbers mean all between them.
bool is_range_sign(std::string_view between) {
  between = base::trim(between);
  return between == "-" || between == ".." || between == "..." || between == "\u2026" ||
         between == "\u2013";
}

/// "1-3, 5 and 6" behind "ranks"; stops at the first word that does not belong to the list.
std::vector<model::Rank> listed_ranks(const std::vector<Word>& words) {
  std::vector<model::Rank> out;
  const auto begins = [](const Word& word) { return word.text == "ranks" || word.text == "Ranks"; };
  auto word = std::find_if(words.begin(), words.end(), begins);
  for (word = word == words.end() ? word : word + 1; word != words.end(); ++word) {
    const auto number = number_of(word->text, model::kMaxWorldSize - 1);
    if (!number && (word->text != "and" || out.empty())) {
      break;
    }
    if (!number) {
      continue;
    }
    const auto rank = static_cast<model::Rank>(*number);
    for (model::Rank between = out.empty() || !is_range_sign(word->between) ? rank : out.back() + 1;
         between <= rank && out.size() < kMostCopies; ++between) {
      out.push_back(between);
    }
  }
  return out;
}

/// {"TP", 3} of "TP3", and {"", 7} of "7".
std::optional<std::pair<std::string, int>> coordinate(std::string_view word) {
  if (const auto number = number_of(word, model::kMaxWorldSize - 1)) {
    return std::pair(std::string(), static_cast<int>(*number));
  }
  const Coordinates one = coordinates_of(word);
  return one.size() == 1 ? std::optional(std::pair<std::string, int>(*one.begin())) : std::nullopt;
}

/// "TP2 (DP1)" is one process, "TP2, TP3" are two, "TP1 .. TP7" and "TP1-7" are seven.
std::vector<Coordinates> listed_places(const std::vector<Word>& words) {
  std::vector<Coordinates> out;
  bool apart = true;  // a word of prose or a comma ends a process
  std::string newest;
  for (const Word& word : words) {
    const auto one = coordinate(word.text);
    const bool range = one && !out.empty() && !newest.empty() && is_range_sign(word.between) &&
                       (one->first.empty() || one->first == newest);
    if (range) {
      for (int next = out.back()[newest] + 1; next <= one->second && out.size() < kMostCopies;
           ++next) {
        out.push_back(out.back());
        out.back()[newest] = next;
      }
    } else if (one && !one->first.empty()) {
      apart = apart || out.empty() || base::contains(word.between, ",") ||
              out.back().contains(one->first);
      if (apart) {
        out.emplace_back();
      }
      out.back()[one->first] = one->second;
      newest = one->first;
    }
    apart = !one;
  }
  return out;
}

bool in_layout(const Coordinates& place) {
  return place.contains("TP") || place.contains("DP") || place.contains("PP");
}

/// "dump::of_TP2_DP1".
std::string heading_title(const Coordinates& place) {
  std::string out(kHeadingTitle);
  for (const auto& [dimension, number] : place) {
    out += fmt::format("_{}{}", dimension, number);
  }
  return out;
}

}  // namespace

DumpHeading heading_of(std::string_view line) {
  if (line.size() > kLongestHeadingLine) {
    return {};
  }
  const auto words = heading_words(line);
  if (auto ranks = listed_ranks(words); !ranks.empty()) {
    return {.ranks = std::move(ranks), .places = {}};
  }
  if (const auto rank = rank_in_line(line)) {
    return {.ranks = {*rank}, .places = {}};
  }
  auto places = listed_places(words);
  const bool known = std::all_of(places.begin(), places.end(), in_layout);
  return {.ranks = {}, .places = known ? std::move(places) : std::vector<Coordinates>()};
}

void give_to(const DumpHeading& heading, std::size_t first, std::vector<StackDump>& dumps) {
  const std::size_t all = std::max(heading.ranks.size(), heading.places.size());
  const bool one = dumps.size() == first + 1;
  const auto name = [&heading](std::size_t i, model::Process& process) {
    if (i < heading.ranks.size()) {
      process.rank = heading.ranks[i];
    } else if (process.command.empty()) {  // a title of its own says more
      process.command = {heading_title(heading.places[i])};
    }
  };
  for (std::size_t i = first; all > 0 && i < dumps.size(); ++i) {
    name(0, dumps[i].process);
  }
  for (std::size_t i = 1; one && i < all; ++i) {
    StackDump copy = dumps[first];
    copy.process.pid = 0;
    copy.process.command.clear();
    copy.identity = fmt::format("{} {}", copy.identity, i);
    for (model::Thread& thread : copy.process.threads) {
      thread.tid = 0;  // of the dumped process alone
    }
    name(i, copy.process);
    dumps.push_back(std::move(copy));
  }
}

}  // namespace ddpdoctor::imports

// SPDX-License-Identifier: Apache-2.0
// Finds the rank that a text names.
#include <algorithm>
#include <array>
#include <cctype>
#include <span>

#include "base/lower.h"
#include "base/text.h"
#include "collector/imports/stack_dumps/dump_processes.h"

namespace ddpdoctor::imports {
namespace {

constexpr std::int64_t kMostRank = model::kMaxWorldSize - 1;
constexpr std::int64_t kMostBareRank = 1023;  // largest rank of a file named by a number alone

bool is_letter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0;
}

/// The number after the last "rank" that has one: "rank3", "rank_3", "rank-3", "rank 3", "rank: 3".
std::optional<model::Rank> rank_word(std::string_view text) {
  const std::string low = base::lower(text);
  std::optional<model::Rank> found;
  for (std::size_t at = low.find("rank"); at != std::string::npos; at = low.find("rank", at + 4)) {
    if (at > 0 && std::isalpha(static_cast<unsigned char>(low[at - 1])) != 0) {
      continue;  // "ranked", "crank3"
    }
    std::string_view rest = std::string_view(low).substr(at + 4);
    for (int i = 0;
         i < 3 && !rest.empty() && std::string_view("_-:=. #").find(rest.front()) != rest.npos;
         ++i) {
      rest.remove_prefix(1);
    }
    if (const auto number = take_number(rest, kMostRank)) {
      found = static_cast<model::Rank>(*number);
    }
  }
  return found;
}

/// "…/attempt_0/3/stderr.log": torchrun's --log-dir has a folder for each local rank.
std::optional<model::Rank> rank_of_log_folder(std::string_view path) {
  const auto parts = base::split(path, '/');
  for (std::size_t i = 0; i + 2 < parts.size(); ++i) {
    if (parts[i].starts_with("attempt_")) {
      const auto number = number_of(parts[i + 1], kMostRank);
      return number ? std::optional(static_cast<model::Rank>(*number)) : std::nullopt;
    }
  }
  return std::nullopt;
}

/// "py-spy-3.txt", "stack.3", "3.txt": the last number of the name, if it is a word of its own.
std::optional<model::Rank> bare_number(std::string_view name, const std::vector<StackDump>& dumps) {
  const std::size_t dot = name.rfind('.');
  if (dot != std::string_view::npos && !number_of(name.substr(dot + 1), kMostBareRank)) {
    name = name.substr(0, dot);
  }
  std::size_t start = name.size();
  while (start > 0 && std::isdigit(static_cast<unsigned char>(name[start - 1])) != 0) {
    --start;
  }
  const auto number = number_of(name.substr(start), kMostBareRank);
  const bool alone = start == 0 || !is_letter(name[start - 1]);
  const bool is_pid = std::any_of(dumps.begin(), dumps.end(), [&number](const StackDump& dump) {
    return number && dump.process.pid == *number && dump.process.pid != 0;
  });
  return number && alone && !is_pid ? std::optional(static_cast<model::Rank>(*number))
                                    : std::nullopt;
}

constexpr std::array<std::string_view, 3> kGlobalWords = {"--rank", "--global_rank",
                                                          "--global-rank"};
constexpr std::array<std::string_view, 2> kLocalWords = {"--local_rank", "--local-rank"};
constexpr std::array<std::string_view, 3> kOtherWords = {"RANK", "RANK_ID", "rank"};

/// The number behind the first of these words that a command has: "--rank=2", "--rank 2", "RANK=2".
std::optional<model::Rank> rank_behind(std::span<const std::string_view> words,
                                       const std::vector<std::string>& command) {
  for (const std::string_view word : words) {
    for (std::size_t i = 0; i < command.size(); ++i) {
      std::string_view rest = command[i];
      if (!take_prefix(rest, word)) {
        continue;
      }
      const bool next = rest.empty() && word.starts_with("--") && i + 1 < command.size();
      const auto number = next                     ? number_of(command[i + 1], kMostRank)
                          : take_prefix(rest, "=") ? number_of(rest, kMostRank)
                                                   : std::nullopt;
      if (number) {
        return static_cast<model::Rank>(*number);
      }
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<model::Rank> rank_in_path(std::string_view path,
                                        const std::vector<StackDump>& dumps) {
  const std::string_view name = base::file_name(path);
  if (const auto rank = rank_word(name)) {
    return rank;
  }
  if (const auto rank = rank_of_log_folder(path)) {
    return rank;
  }
  const std::string_view folder = path.substr(0, path.size() - name.size());
  const std::string_view inner =
      base::file_name(base::trim(folder.substr(0, folder.empty() ? 0 : folder.size() - 1)));
  if (const auto rank = rank_word(inner)) {
    return rank;
  }
  return dumps.empty() ? std::nullopt : bare_number(name, dumps);
}

std::string host_in_path(std::string_view path) {
  constexpr std::array<std::string_view, 7> kWords = {"host",   "node", "worker", "master",
                                                      "server", "pod",  "machine"};
  const auto parts = base::split(path, '/');
  for (auto part = parts.rbegin(); part != parts.rend() && part - parts.rbegin() < 2; ++part) {
    const std::string low = base::lower(*part);
    for (const std::string_view word : kWords) {
      const std::size_t at = low.find(word);
      const bool begins = at != low.npos && (at == 0 || !is_letter(low[at - 1]));
      std::size_t digit = begins ? at + word.size() : low.npos;
      if (begins && digit < low.size() && (low[digit] == '-' || low[digit] == '_')) {
        ++digit;
      }
      std::size_t end = std::min(digit, low.size());
      while (end < low.size() && std::isdigit(static_cast<unsigned char>(low[end])) != 0) {
        ++end;
      }
      if (begins && end > digit && end - digit <= 9) {
        return low.substr(at, end - at);
      }
    }
  }
  return {};
}

std::optional<model::Rank> rank_in_command(const std::vector<std::string>& command) {
  const auto global = rank_behind(kGlobalWords, command);
  const auto local = global ? global : rank_behind(kLocalWords, command);
  return local ? local : rank_behind(kOtherWords, command);
}

bool has_only_local_rank(const std::vector<std::string>& command) {
  return rank_behind(kLocalWords, command) && !rank_behind(kGlobalWords, command) &&
         !rank_behind(kOtherWords, command);
}

std::optional<model::Rank> rank_in_text(std::string_view text) {
  return rank_word(text);
}

std::optional<model::Rank> rank_in_line(std::string_view line) {
  constexpr std::size_t kLongestHeading = 80;
  return line.size() <= kLongestHeading ? rank_word(line) : std::nullopt;
}

}  // namespace ddpdoctor::imports

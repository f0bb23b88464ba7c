// SPDX-License-Identifier: Apache-2.0
// A prefix is a head of words between brackets, bars, slashes and colons. Its shape has "#" for
// each number and "w" for each other word. A head with a counter ("Epoch [3]: ") has the same shape
// as one with a rank; only a launcher puts its head before the lines of a traceback, a stack or a
// message of torch, too.
#include "collector/imports/logs/prefix_shape.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/imports/logs/fabric_text.h"
#include "collector/imports/logs/prefix_numbers.h"
#include "collector/imports/stack_dumps/stack_text.h"
#include "collector/model/log_lines.h"

namespace ddpdoctor::imports {
namespace {

constexpr std::size_t kLongestHead = 80;
constexpr std::size_t kMostHeads = 4096;
constexpr std::size_t kMostShapes = 256;
constexpr std::size_t kMostTried = 4;         // shapes
constexpr std::size_t kMostSampled = 20'000;  // lines that decide the shape
constexpr std::size_t kMostNamedHeads = 8;    // in a warning
constexpr std::int64_t kMostInName = 1'000'000;

bool of_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '-' || c == '_';
}

bool opens_bracket(char c) {
  return c == '[' || c == '(' || c == '<' || c == '{';
}

bool closes_bracket(char c) {
  return c == ']' || c == ')' || c == '>' || c == '}';
}

bool closes(char c) {
  return closes_bracket(c) || c == '|' || c == ':';
}

/// The beginning of a line.
struct Head {
  std::string_view text;  // "[trainer1|1]:"
  std::string shape;      // "[w|#]:"
  std::vector<std::string_view> words;
  std::string_view rest;
};

/// All heads of a line, the shortest first: each ends behind a closing character.
std::vector<Head> heads_of(std::string_view line) {
  std::vector<Head> out;
  std::string shape;
  std::vector<std::string_view> words;
  int depth = 0;  // of brackets
  const std::size_t most = std::min(line.size(), kLongestHead);
  for (std::size_t at = 0; at < most;) {
    if (of_name(line[at])) {
      std::size_t end = at;
      while (end < line.size() && of_name(line[end])) {
        ++end;
      }
      const std::string_view word = line.substr(at, end - at);
      shape += number_of(word, kMostInName) ? '#' : 'w';
      words.push_back(word);
      at = end;
      continue;
    }
    const std::string_view kAllowed = "[](){}<>|/: @,=";
    if (kAllowed.find(line[at]) == kAllowed.npos ||
        (line[at] == ' ' && (at == 0 || line[at - 1] == ' '))) {
      break;
    }
    shape += line[at];
    depth += opens_bracket(line[at]) ? 1 : closes_bracket(line[at]) ? -1 : 0;
    const bool ends =
        depth <= 0 && closes(line[at]) && (at + 1 == line.size() || !closes(line[at + 1]));
    ++at;
    if (ends && !words.empty()) {
      out.push_back(
          {.text = line.substr(0, at), .shape = shape, .words = words, .rest = line.substr(at)});
    }
  }
  return out;
}

/// A line without the time that a CI system or a launcher puts first. None if the line names its
/// rank itself, or its process in NCCL's way.
std::optional<std::string_view> behind_time(std::string_view line) {
  const auto read = model::read_log_line(line.substr(0, kLongestLogLine));
  const auto tag = nccl_tag(read.text);
  const bool of_nccl = tag && std::all_of(tag->host.begin(), tag->host.end(), of_name);
  return read.rank || of_nccl ? std::nullopt : std::optional(read.text);
}

/// The shapes with which most lines begin, and their numbers of lines; the most frequent and
/// shortest first.
std::vector<std::pair<std::size_t, std::string>> common_shapes(
    const std::vector<std::string_view>& lines) {
  std::map<std::string, std::size_t> counts;
  std::size_t all = 0;
  for (std::size_t i = 0; i < std::min(lines.size(), kMostSampled); ++i) {
    const auto text = behind_time(lines[i]);
    if (!text || base::trim(*text).empty()) {
      continue;
    }
    ++all;
    for (const Head& head : heads_of(*text)) {
      const bool numbered =
          std::any_of(head.words.begin(), head.words.end(),
                      [](std::string_view word) { return number_in(word).has_value(); });
      if (numbered && (counts.size() < kMostShapes || counts.contains(head.shape))) {
        ++counts[head.shape];
      }
    }
  }
  std::vector<std::pair<std::size_t, std::string>> out;
  for (auto& [shape, count] : counts) {
    // A launcher's own messages and tables have no prefix; "[…]:" is hardly ever anything else.
    const bool bracketed = shape.starts_with('[') && shape.ends_with("]:");
    if (count > 1 && (count * 10 >= all * 9 || (bracketed && count * 3 >= all))) {
      out.emplace_back(count, shape);
    }
  }
  std::sort(out.begin(), out.end(), [](const auto& one, const auto& other) {
    return std::pair(other.first, one.second.size()) < std::pair(one.first, other.second.size());
  });
  out.resize(std::min(out.size(), kMostTried));
  return out;
}

std::optional<Head> head_with(std::string_view text, const std::string& shape) {
  for (Head& head : heads_of(text)) {
    if (head.shape == shape) {
      return std::move(head);
    }
  }
  return std::nullopt;
}

/// A line of a traceback, of a stack, or of a library in C++: no program puts a counter before it.
bool is_of_runtime(std::string_view rest) {
  rest = base::trim(rest);
  constexpr std::array<std::string_view, 6> kBegins = {"Traceback (most recent call last)",
                                                       "File \"",
                                                       "Thread 0x",
                                                       "Current thread 0x",
                                                       "#0  ",
                                                       "terminate called"};
  const bool begins = std::any_of(kBegins.begin(), kBegins.end(),
                                  [rest](std::string_view word) { return rest.starts_with(word); });
  const bool logged = rest.size() > 2 && rest.starts_with('[') &&
                      (rest[1] == 'W' || rest[1] == 'E' || rest[1] == 'I' || rest[1] == 'r') &&
                      rest.substr(0, kLongestHead).find(".cpp:") != rest.npos;
  return begins || logged || rest.find(" NCCL INFO ") != rest.npos ||
         rest.find(" NCCL WARN ") != rest.npos || rest.find("torch.distributed.") != rest.npos;
}

/// What is known of the lines with one head.
struct Process {
  std::vector<std::string_view> words;
  std::size_t lines = 0;
  std::set<model::Rank> told;  // ranks that its lines name behind the head
};

struct Survey {
  std::map<std::string_view, Process> heads;
  std::set<std::string_view> of_runtime;  // heads before lines of a runtime
  // A line with a head follows lines of another, later head: not if it counts ("[Epoch 1]: ").
  bool interleaved = false;
  // A blank follows every head: it is not the indentation of a line.
  bool spaced = true;
};

Survey survey_of(const std::vector<std::string_view>& lines, const std::string& shape) {
  Survey out;
  std::string_view last;
  for (const std::string_view line : lines) {
    const auto text = behind_time(line);
    const auto head = text ? head_with(*text, shape) : std::nullopt;
    if (!head || out.heads.size() > kMostHeads) {
      continue;
    }
    out.interleaved = out.interleaved || (head->text != last && out.heads.contains(head->text));
    last = head->text;
    Process& process = out.heads[head->text];
    process.words = head->words;
    ++process.lines;
    out.spaced = out.spaced && (head->rest.empty() || head->rest.starts_with(' '));
    const auto behind = model::read_log_line(base::trim(head->rest));
    if (behind.rank) {
      process.told.insert(*behind.rank);
    }
    if (is_of_runtime(behind.text) || is_of_runtime(head->rest)) {
      out.of_runtime.insert(head->text);
    }
  }
  return out;
}

std::string_view stem(std::string_view word) {
  return word.substr(0, word.find_last_not_of("0123456789") + 1);
}

/// "node0", "node1" of a grid; "alpha", "beta" before ranks. "trainer0", "trainer1" are roles.
std::vector<std::string> hosts_of(const std::map<std::string_view, Process>& heads,
                                  const Numbering& numbering) {
  std::set<std::string> names;
  std::set<std::string_view> stems;
  for (const auto& [name, process] : heads) {
    names.emplace(process.words.front());
    stems.insert(stem(process.words.front()));
  }
  const bool apart = numbering.grid || (stems.size() > 1 && !stems.contains(""));
  return names.size() > 1 && apart ? std::vector<std::string>(names.begin(), names.end())
                                   : std::vector<std::string>();
}

/// The ranks that the lines behind the heads name, instead of the numbers of heads; a head of
/// several ranks is a host.
std::map<std::string_view, std::optional<model::Rank>> ranks_of_heads(const Survey& survey,
                                                                      const Numbering& numbering) {
  std::map<std::string_view, std::optional<model::Rank>> out;
  bool agree = true;
  std::size_t at = 0;
  for (const auto& [name, process] : survey.heads) {
    const auto number = static_cast<model::Rank>(numbering.ranks[at++]);
    agree = agree && process.told.size() <= 1 &&
            (process.told.empty() || *process.told.begin() == number);
    out[name] = number;
  }
  for (auto& [name, rank] : out) {
    const auto& told = survey.heads.at(name).told;
    if (!agree) {
      rank = told.size() == 1 ? std::optional(*told.begin()) : std::nullopt;
    }
  }
  return out;
}

Labels labelled_by(const std::string& shape, const std::vector<std::string_view>& lines) {
  const Survey survey = survey_of(lines, shape);
  const std::size_t count = survey.heads.size();
  std::size_t fit = 0;
  for (const auto& [name, process] : survey.heads) {
    fit += process.lines;
  }
  // An exception that a program handled in one round of a counter is of one head.
  const std::size_t least = survey.interleaved ? 1 : 2;
  if (survey.of_runtime.size() < least || count < 2 || count > kMostHeads || fit < 2 * count) {
    return {};
  }
  std::vector<HeadWords> words;
  for (const auto& [name, process] : survey.heads) {
    words.push_back(process.words);
  }
  const Numbering numbering = numbering_of(words);
  if (numbering.ranks.empty()) {
    return {};
  }
  const auto ranks = ranks_of_heads(survey, numbering);
  Labels out;
  out.hosts = hosts_of(survey.heads, numbering);
  for (const std::string_view line : lines) {
    const auto text = behind_time(line);
    const auto head = text ? head_with(*text, shape) : std::nullopt;
    const auto rank = head ? ranks.find(head->text) : ranks.end();
    if (rank == ranks.end() || line.size() > kLongestLogLine) {
      out.text += line;
    } else {
      const auto before = line.substr(0, static_cast<std::size_t>(text->data() - line.data()));
      std::string_view rest = head->rest;
      take_prefix(rest, survey.spaced ? " " : "");
      const bool own = model::read_log_line(rest).rank.has_value();
      out.text += rank->second && !own ? fmt::format("{}[rank{}]: {}", before, *rank->second, rest)
                                       : fmt::format("{}{}", before, rest);
    }
    out.text += '\n';
  }
  std::size_t named = 0;
  for (const auto& [name, rank] : ranks) {
    if (numbering.assumed && rank && named++ < kMostNamedHeads) {
      out.warning += fmt::format("{}rank {} is {}", named == 1 ? ": " : ", ", *rank, name);
    }
  }
  if (!out.warning.empty()) {
    out.warning = fmt::format(
        "the log names processes by host and number; their ranks are counted from these{}",
        base::printable(out.warning));
  }
  return out;
}

}  // namespace

Labels with_shape_as_ranks(const std::vector<std::string_view>& lines) {
  for (const auto& [count, shape] : common_shapes(lines)) {
    if (Labels out = labelled_by(shape, lines); !out.text.empty()) {
      return out;
    }
  }
  return {};
}

}  // namespace ddpdoctor::imports

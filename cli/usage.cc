// SPDX-License-Identifier: Apache-2.0
#include "cli/usage.h"

#include <algorithm>
#include <charconv>
#include <numeric>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/text.h"
#include "cli/command.h"

namespace ddpdoctor::cli {

namespace {

constexpr std::size_t kLongestMessage = 900;  // bytes; a path can be 4096
constexpr std::size_t kMostSuggestions = 5;

/// Levenshtein's distance.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t k = 0; k < b.size(); ++k) {
      const std::size_t above = row[k + 1];
      row[k + 1] = std::min({above + 1, row[k] + 1, diagonal + (a[i] == b[k] ? 0U : 1U)});
      diagonal = above;
    }
  }
  return row.back();
}

std::string command_names() {
  std::string names;
  for (const Command& command : commands()) {
    if (!command.hidden) {
      names += (names.empty() ? "" : ", ") + std::string(command.name);
    }
  }
  return names;
}

/// "did you mean attach?"; empty if no word is similar.
std::string meant(std::string_view typed, const std::vector<std::string>& words) {
  const std::vector<std::string_view> all(words.begin(), words.end());
  const std::vector<std::string_view> close = near(typed, all);
  return close.empty() ? std::string() : fmt::format("did you mean {}? ", close.front());
}

std::vector<std::string> names_of_commands() {
  std::vector<std::string> out;
  for (const Command& command : commands()) {
    out.emplace_back(command.name);
  }
  return out;
}

std::vector<std::string> names_of_options(const CLI::App& app) {
  std::vector<std::string> out;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      out.push_back("--" + name);
    }
  }
  return out;
}

}  // namespace

void print_error(const base::Error& error) {
  fmt::print(stderr, "ddpdoctor: {}\n", base::elide(base::printable(error.what), kLongestMessage));
  if (!error.hint.empty()) {
    fmt::print(stderr, "  {}\n", base::elide(base::printable(error.hint), kLongestMessage));
  }
}

std::vector<std::string_view> near(std::string_view typed,
                                   const std::vector<std::string_view>& words) {
  typed = typed.substr(0, 64);  // longer than every word: no word is similar
  std::vector<std::pair<std::size_t, std::string_view>> close;
  for (const std::string_view word : words) {
    const bool part = typed.size() >= 3 && word.find(typed) != std::string_view::npos;
    const std::size_t away = part ? 1 : distance(typed, word);
    if (away <= std::max<std::size_t>(2, word.size() / 3)) {
      close.emplace_back(away, word);
    }
  }
  std::sort(close.begin(), close.end());
  std::vector<std::string_view> out;
  for (const auto& [away, word] : close) {
    if (out.size() < kMostSuggestions) {
      out.push_back(word);
    }
  }
  return out;
}

base::Result<void> check_leftovers(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  if (chosen.empty()) {
    const std::vector<std::string> words = app.remaining();
    if (words.empty()) {
      return base::failure("no command was given",
                           fmt::format("commands: {}; see ddpdoctor --help", command_names()));
    }
    const bool option = words.front().starts_with('-');
    return base::failure(
        fmt::format("unknown {} {}", option ? "option" : "command", words.front()),
        fmt::format("{}commands: {}; see ddpdoctor --help",
                    option ? std::string() : meant(words.front(), names_of_commands()),
                    command_names()));
  }
  const std::string command = chosen.front()->get_name();
  std::vector<std::string> words = chosen.front()->remaining();
  const std::vector<std::string> before = app.remaining();
  words.insert(words.end(), before.begin(), before.end());
  std::erase(words, "--");  // CLI11 keeps "--" itself; arguments follow it
  if (!words.empty()) {
    const bool option = words.front().starts_with('-');
    const std::string name = words.front().substr(0, words.front().find('='));
    return base::failure(
        fmt::format("{}: unknown {} {}", command, option ? "option" : "argument", words.front()),
        fmt::format("{}see ddpdoctor {} --help",
                    option ? meant(name, names_of_options(*chosen.front())) : std::string(),
                    command));
  }
  return {};
}

base::Error in_our_words(const CLI::App& app, std::string_view report) {
  const auto chosen = app.get_subcommands();
  const std::string command = chosen.empty() ? std::string() : chosen.front()->get_name();
  std::string hint = fmt::format("see ddpdoctor {}{}--help", command, command.empty() ? "" : " ");
  const auto option_named = [&](std::string_view name) {
    return chosen.empty() ? nullptr : chosen.front()->get_option_no_throw(std::string(name));
  };
  constexpr std::string_view kNoNumber = "Could not convert: ";
  if (const std::size_t equals = report.find(" = ");
      report.starts_with(kNoNumber) && equals != std::string_view::npos) {
    const std::string_view name = report.substr(kNoNumber.size(), equals - kNoNumber.size());
    return {.what = fmt::format("invalid {} '{}': expected a number", name,
                                report.substr(equals + std::string_view(" = ").size())),
            .hint = std::move(hint)};
  }
  if (const CLI::Option* option = option_named(report.substr(0, report.find(':')))) {
    const std::string name = option->get_name();
    return {.what = fmt::format("{} needs {}", name, option->get_type_name()),
            .hint = fmt::format("ddpdoctor {} {} {}; {}", command, name, option->get_type_name(),
                                hint)};
  }
  return {.what = std::string(report), .hint = std::move(hint)};
}

base::Result<long> number(std::string_view text, std::string_view what, long least, long most) {
  long value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::invalid_argument || end != text.data() + text.size()) {
    return base::failure(fmt::format("invalid {} '{}': expected a number", what, text),
                         what == kPid ? "find it: pgrep -af torchrun" : "");
  }
  if (error != std::errc() || value < least || value > most) {
    return base::failure(
        fmt::format("invalid {} '{}': expected a number from {} to {}", what, text, least, most));
  }
  return value;
}

}  // namespace ddpdoctor::cli

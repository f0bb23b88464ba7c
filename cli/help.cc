// SPDX-License-Identifier: Apache-2.0
#include "cli/help.h"

#include <algorithm>
#include <cctype>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "viewer/render.h"

namespace ddpdoctor::cli {
namespace {

constexpr std::size_t kOptionWidth = 26;

bool is_pid(const std::string& word) {
  return !word.empty() && std::all_of(word.begin(), word.end(), [](char c) {
    return std::isdigit(static_cast<unsigned char>(c)) != 0;
  });
}

bool is_command(const std::string& word) {
  const auto all = commands();
  return std::any_of(all.begin(), all.end(),
                     [&word](const Command& command) { return command.name == word; });
}

/// Our descriptions of the common options, and the layout of --help.
void describe(CLI::App& program) {
  program.set_help_flag("-h,--help", "print this help");
  program.set_version_flag("-V,--version", fmt::format("ddpdoctor {}", viewer::tool_version()),
                           "print the version");
  const auto frame = program.get_formatter();
  frame->column_width(kOptionWidth);
  frame->label("SUBCOMMAND", "COMMAND");
  frame->label("Subcommands", "Commands");
  frame->label("Positionals", "Arguments");
  program.footer(R"(Examples:
  pgrep -af torchrun                    find the job
  ddpdoctor attach 4711                 report why the job around process 4711 hangs
  ddpdoctor run -- torchrun train.py    start a job, and report when it hangs or crashes
  ddpdoctor report dumps/ train.log     read dumps and logs that a job left
  ddpdoctor explain missing-rank        what a kind of finding means, and its fix

Exit status of attach and report: 0 no finding, 1 findings, 2 wrong command line, 3 nothing could be observed
More: ddpdoctor help COMMAND, ddpdoctor man, ddpdoctor completion bash|zsh|fish)");
}

/// The command's examples and exit statuses below its options.
void describe(CLI::App& app, const Command& command) {
  app.set_help_flag("-h,--help", "print this help");
  app.footer(fmt::format("Examples:\n{}\n\nExit status: {}", command.examples, command.statuses));
  app.group(command.hidden ? "" : "Commands");
}

}  // namespace

std::map<std::string, std::unique_ptr<Action>> declare(CLI::App& program) {
  describe(program);
  program.allow_extras();
  program.require_subcommand(0, 1);  // `man attach`: the second word is an argument
  std::map<std::string, std::unique_ptr<Action>> actions;
  for (const Command& command : commands()) {
    CLI::App* words =
        program.add_subcommand(std::string(command.name), std::string(command.summary));
    words->allow_extras();
    describe(*words, command);
    actions[std::string(command.name)] = command.declare(*words);
  }
  return actions;
}

void parse(CLI::App& program, std::vector<std::string> words) {
  words = as_meant(std::move(words));
  std::reverse(words.begin(), words.end());  // CLI11 takes them from the end
  words.pop_back();
  program.parse(std::move(words));
}

std::vector<std::string> as_meant(std::vector<std::string> words) {
  if (words.size() < 2) {
    return words;
  }
  const std::string first = words[1];
  if (first == "help") {
    words.erase(words.begin() + 1);
    if (words.size() == 1 || is_command(words[1])) {  // else: "unknown command"
      words.emplace_back("--help");
    }
  } else if (first == "version" && words.size() == 2) {
    words[1] = "--version";
  } else if (is_pid(first)) {
    words.insert(words.begin() + 1, "attach");
  }
  return words;
}

}  // namespace ddpdoctor::cli

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

/// Our words for what every command has, and the frame of --help.
void describe(CLI::App& program) {
  program.set_help_flag("-h,--help", "print this help");
  program.set_version_flag("-V,--version", fmt::format("ddpdoctor {}", viewer::tool_version()),
                           "print the version");
  const auto frame = program.get_formatter();
  frame->column_width(kOptionWidth);
  frame->label("SUBCOMMAND", "COMMAND");
  frame->label("Subcommands", "Commands");
  frame->label("Positionals", "Arguments");
  program.footer(
      "Start with: ddpdoctor attach PID (a job that hangs now) or ddpdoctor run -- torchrun … "
      "(a job to start).\nMore: ddpdoctor help COMMAND");
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
    words.emplace_back("--help");
  } else if (first == "version" && words.size() == 2) {
    words[1] = "--version";
  } else if (is_pid(first)) {
    words.insert(words.begin() + 1, "attach");
  }
  return words;
}

}  // namespace ddpdoctor::cli

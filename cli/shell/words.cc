// SPDX-License-Identifier: Apache-2.0
#include "cli/shell/words.h"

#include <CLI/CLI.hpp>

#include "cli/command.h"
#include "collector/detectors/detector.h"

namespace ddpdoctor::cli {
namespace {

OptionWords words_of(const CLI::Option& option) {
  OptionWords out{.names = {},
                  .value = option.get_expected_max() == 0 ? std::string() : option.get_type_name(),
                  .meaning = option.get_description()};
  for (const std::string& name : option.get_snames()) {
    out.names.push_back("-" + name);
  }
  for (const std::string& name : option.get_lnames()) {
    out.names.push_back("--" + name);
  }
  return out;
}

std::vector<std::string> kinds() {
  std::vector<std::string> out;
  for (const detectors::Detector* detector : detectors::catalog()) {
    out.emplace_back(detector->kind);
  }
  return out;
}

}  // namespace

std::vector<CommandWords> words_of(const CLI::App& program) {
  std::vector<CommandWords> out;
  for (const Command& command : commands()) {
    if (command.hidden) {
      continue;
    }
    const CLI::App& app = *program.get_subcommand(std::string(command.name));
    CommandWords words{.name = app.get_name(),
                       .summary = app.get_description(),
                       .options = {},
                       .arguments = {},
                       .values = {},
                       .footer = app.get_footer()};
    for (const CLI::Option* option : app.get_options()) {
      OptionWords one = words_of(*option);
      if (one.names.empty()) {
        words.arguments.push_back(std::move(one));
      } else {
        words.options.push_back(std::move(one));
      }
    }
    if (command.declare == declare_explain) {
      words.values = kinds();
    }
    out.push_back(std::move(words));
  }
  return out;
}

}  // namespace ddpdoctor::cli

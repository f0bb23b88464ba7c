// SPDX-License-Identifier: Apache-2.0
// Everything that can be typed after `ddpdoctor`, read from the parser: the only source of
// completions and manual pages.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace ddpdoctor::cli {

struct OptionWords {
  std::vector<std::string> names;  // "--samples", "-o"
  std::string value;               // "N"; empty for a flag
  std::string meaning;
};

struct CommandWords {
  std::string name;
  std::string summary;
  std::vector<OptionWords> options;
  std::vector<OptionWords> arguments;  // without names
  std::vector<std::string> values;     // what the argument can be, where that is a list
  std::string footer;                  // possible values of the argument, if there is a list
};

/// The public commands, in the order of --help.
std::vector<CommandWords> words_of(const CLI::App& program);

/// `shell` is bash, zsh or fish; empty for any other.
std::string completion_for(const std::string& shell, const std::vector<CommandWords>& commands);

/// In roff (man(7)): the page of the program, and of one command.
std::string man_page(const std::vector<CommandWords>& commands);
std::string man_page(const CommandWords& command);

}  // namespace ddpdoctor::cli

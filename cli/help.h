// SPDX-License-Identifier: Apache-2.0
// The text of --help, and the equivalent spellings of a command line.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cli/command.h"

namespace CLI {
class App;
}

namespace ddpdoctor::cli {

/// Declares the program's options and all commands; returns the actions by command name.
std::map<std::string, std::unique_ptr<Action>> declare(CLI::App& program);

/// Parses the command line, with the program's name first. Throws CLI::Error.
void parse(CLI::App& program, std::vector<std::string> words);

/// Translates `help`, `help attach`, `version`, `-V` and a bare pid (`4711`: attach) into the
/// parser's form. The program's name comes first.
std::vector<std::string> as_meant(std::vector<std::string> words);

}  // namespace ddpdoctor::cli

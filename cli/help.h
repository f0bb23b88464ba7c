// SPDX-License-Identifier: Apache-2.0
// What --help prints, and the spellings of a command line that mean the same.
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

/// The program's options and all commands; what each does, by its name.
std::map<std::string, std::unique_ptr<Action>> declare(CLI::App& program);

/// The words of the command line, the name of the program first. Throws CLI::Error.
void parse(CLI::App& program, std::vector<std::string> words);

/// `help`, `help attach`, `version`, `-V` and a bare pid (`4711`: attach) in the words of the
/// parser. The name of the program comes first.
std::vector<std::string> as_meant(std::vector<std::string> words);

}  // namespace ddpdoctor::cli

// SPDX-License-Identifier: Apache-2.0
// ddpdoctor man [COMMAND]: a manual page.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/command.h"
#include "cli/exit_codes.h"
#include "cli/output.h"
#include "cli/shell/words.h"

namespace ddpdoctor::cli {
namespace {

class Man : public Action {
 public:
  explicit Man(CLI::App& app) : program_(*app.get_parent()) {
    app.add_option("command", command_, "the page of this command; none: of the program")
        ->type_name("COMMAND");
  }

  base::Result<int> run() override {
    const std::vector<CommandWords> all = words_of(program_);
    if (command_.empty()) {
      return print(man_page(all)) ? kNothingFound : kNotObserved;
    }
    for (const CommandWords& one : all) {
      if (one.name == command_) {
        return print(man_page(one)) ? kNothingFound : kNotObserved;
      }
    }
    return base::failure(fmt::format("man: unknown command {}", command_), "see ddpdoctor --help");
  }

 private:
  const CLI::App& program_;
  std::string command_;
};

}  // namespace

std::unique_ptr<Action> declare_man(CLI::App& app) {
  return std::make_unique<Man>(app);
}

}  // namespace ddpdoctor::cli

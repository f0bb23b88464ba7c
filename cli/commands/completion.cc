// SPDX-License-Identifier: Apache-2.0
// ddpdoctor completion SHELL: the script with which a shell completes our commands and options.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/command.h"
#include "cli/exit_codes.h"
#include "cli/output.h"
#include "cli/shell/words.h"

namespace ddpdoctor::cli {
namespace {

class Completion : public Action {
 public:
  explicit Completion(CLI::App& app) : program_(*app.get_parent()) {
    app.add_option("shell", shell_, "bash, zsh or fish")->type_name("SHELL");
  }

  base::Result<int> run() override {
    const std::string script = completion_for(shell_, words_of(program_));
    if (script.empty()) {
      return base::failure(shell_.empty() ? "completion: no shell was given"
                                          : fmt::format("completion: unknown shell {}", shell_),
                           "ddpdoctor completion bash, zsh or fish");
    }
    return print(script) ? kNothingFound : kNotObserved;
  }

 private:
  const CLI::App& program_;
  std::string shell_;
};

}  // namespace

std::unique_ptr<Action> declare_completion(CLI::App& app) {
  return std::make_unique<Completion>(app);
}

}  // namespace ddpdoctor::cli

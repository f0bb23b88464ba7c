// SPDX-License-Identifier: Apache-2.0
// ddpdoctor: parse, run, exit.
#include <exception>
#include <map>
#include <new>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/command.h"
#include "cli/exit_codes.h"
#include "cli/own_process.h"
#include "cli/usage.h"
#include "viewer/render.h"

namespace ddpdoctor::cli {
namespace {

int run(int argc, char** argv) {
  std::vector<char*> typed = words_of(argc, argv);
  CLI::App app("Names the cause of a hung distributed PyTorch job.", "ddpdoctor");
  app.set_version_flag("--version", fmt::format("ddpdoctor {}", viewer::tool_version()));
  app.allow_extras();
  std::map<std::string, std::unique_ptr<Action>> actions;
  for (const Command& command : commands()) {
    CLI::App* words = app.add_subcommand(std::string(command.name), std::string(command.summary));
    words->allow_extras()->group(command.hidden ? "" : words->get_group());
    actions[std::string(command.name)] = command.declare(*words);
  }
  try {
    app.parse(static_cast<int>(typed.size()), typed.data());
  } catch (const CLI::Success& asked) {  // --help, --version
    return app.exit(asked);
  } catch (const CLI::ParseError& error) {
    print_error({.what = error.what(), .hint = "see ddpdoctor --help"});
    return kUsage;
  }
  const auto status = check_leftovers(app).and_then(
      [&] { return actions.at(app.get_subcommands().front()->get_name())->run(); });
  if (!status) {
    print_error(status.error());
  }
  return status.value_or(kUsage);
}

}  // namespace
}  // namespace ddpdoctor::cli

int main(int argc, char** argv) {
  ddpdoctor::cli::prepare_own_process();
  try {
    return ddpdoctor::cli::run(argc, argv);
  } catch (const std::bad_alloc&) {
    ddpdoctor::cli::print_error({.what = "out of memory: the input is too large", .hint = {}});
  } catch (const std::exception& error) {
    ddpdoctor::cli::print_error({.what = error.what(), .hint = "an internal error of ddpdoctor"});
  }
  return ddpdoctor::cli::kNotObserved;
}

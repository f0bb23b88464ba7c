// SPDX-License-Identifier: Apache-2.0
// ddpdoctor: parse, run, exit.
#include <exception>
#include <new>

#include <CLI/CLI.hpp>

#include "cli/exit_codes.h"
#include "cli/help.h"
#include "cli/own_process.h"
#include "cli/usage.h"

namespace ddpdoctor::cli {
namespace {

int run(int argc, char** argv) {
  CLI::App app("Names the cause of a hung distributed PyTorch job.", "ddpdoctor");
  const auto actions = declare(app);
  try {
    parse(app, words_of(argc, argv));
  } catch (const CLI::Success& asked) {  // --help, --version
    return app.exit(asked);
  } catch (const CLI::ParseError& error) {
    print_error(in_our_words(app, error.what()));
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

// SPDX-License-Identifier: Apache-2.0
// ddpdoctor pyspy dump --pid PID: the options, output and exit statuses of `py-spy dump`, for
// programs that call it by name (watchdogs of SGLang and vLLM, scripts). A link named py-spy to
// this program does the same.
#include <charconv>
#include <limits>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/command.h"
#include "cli/output.h"
#include "cli/pyspy/stacks_dump.h"
#include "cli/usage.h"

namespace ddpdoctor::cli {
namespace {

constexpr int kFailed = 1;  // py-spy's status for every failure

/// A decimal number, or hexadecimal with 0x.
base::Result<pid_t> pid_of(const std::string& text) {
  const bool hex = text.starts_with("0x");
  const char* const begin = text.data() + (hex ? 2 : 0);
  const char* const end = text.data() + text.size();
  pid_t pid = 0;
  const auto [rest, error] = std::from_chars(begin, end, pid, hex ? 16 : 10);
  if (error != std::errc() || rest != end || pid <= 0) {
    return base::failure(fmt::format("invalid PID '{}': expected a number", text));
  }
  return pid;
}

class PySpy : public Action {
 public:
  explicit PySpy(CLI::App& app) {
    app.add_option("what", what_, "dump: the stacks of a Python process, once")->type_name("dump");
    app.add_option("-p,--pid", pid_, "the process, in decimal or hexadecimal")->type_name("PID");
    app.add_flag("-n,--native", dump_.native, "also frames of C and C++");
    app.add_flag("-j,--json", json_, "JSON");
    app.add_flag("-s,--subprocesses", dump_.descendants,
                 "and all processes below it that run Python");
    app.add_flag("-l,--locals", style_.locals,
                 "local variables, where known: those of torch.distributed's frames");
    app.add_flag("--full-filenames", style_.full_filenames,
                 "whole paths, not only from the package on");
    app.add_flag("--nonblocking", nonblocking_,
                 "never stop a thread; sleeping threads are not stopped anyway");
    app.add_option("-c,--core", core_, "refused: core files are not read")->type_name("FILE");
  }

  base::Result<int> run() override {
    if (what_ != "dump") {
      return base::failure(fmt::format("pyspy {}: only dump is known", what_),
                           "ddpdoctor pyspy dump --pid PID");
    }
    if (!core_.empty()) {
      return base::failure("pyspy dump --core: core files are not read");
    }
    if (pid_.empty()) {
      return base::failure("pyspy dump: no --pid was given", "ddpdoctor pyspy dump --pid PID");
    }
    dump_.allow_stop = !nonblocking_;
    const pid_t pid = TRY(pid_of(pid_));
    const auto processes = monitor::dump_python(pid, dump_);
    if (!processes) {
      print_error(processes.error());
      return kFailed;
    }
    return print(json_ ? dump_as_json(*processes, style_) : dump_as_text(*processes, style_))
               ? 0
               : kFailed;
  }

 private:
  std::string what_;
  std::string pid_;
  std::string core_;
  bool json_ = false;
  bool nonblocking_ = false;
  monitor::DumpOptions dump_;
  DumpStyle style_;
};

}  // namespace

std::unique_ptr<Action> declare_pyspy(CLI::App& app) {
  return std::make_unique<PySpy>(app);
}

}  // namespace ddpdoctor::cli

// SPDX-License-Identifier: Apache-2.0
// ddpdoctor mcp: the server for coding agents, which is part of the Python package: replaces this
// process with a Python that has the package.
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/text.h"
#include "cli/command.h"
#include "cli/exit_codes.h"
#include "cli/usage.h"

namespace ddpdoctor::cli {
namespace {

namespace fs = std::filesystem;

// The working directory is the agent's and may contain a logging.py: it is not in Python's path.
constexpr const char* kServe = R"(import sys
sys.path[:] = [path for path in sys.path if path] + sys.argv[1:]
try:
    from ddpdoctor.mcp_server import main
except ImportError as error:
    sys.stderr.write("ddpdoctor: %s has no Python package ddpdoctor with an MCP server (%s); run `%s -m pip install 'ddpdoctor[mcp]'`, "
                     "or set DDPDOCTOR_PYTHON to the Python that has it\n" % (sys.executable, error, sys.executable))
    sys.exit(3)
sys.exit(main()))";

fs::path own_file() {
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error);
}

/// The given Python, else that of the active virtual environment, else the one in PATH.
std::string python_for(const fs::path& program) {
  if (const char* chosen = std::getenv("DDPDOCTOR_PYTHON"); chosen != nullptr && *chosen != 0) {
    return chosen;
  }
  const fs::path folder = program.parent_path();
  std::error_code error;
  if (fs::exists(folder.parent_path() / "pyvenv.cfg", error) &&
      ::access((folder / "python3").c_str(), X_OK) == 0) {
    return folder / "python3";
  }
  return "python3";
}

/// Where `cmake --install` and the .deb install the package; it comes last in Python's path,
/// because a package that pip installed is as new as its program.
std::string package_beside(const fs::path& program) {
  return program.parent_path().parent_path() / "share" / "ddpdoctor" / "python";
}

class Mcp : public Action {
 public:
  base::Result<int> run() override {
    const fs::path program = own_file();
    ::setenv("DDPDOCTOR", program.c_str(), 1);
    std::string python = python_for(program);
    std::string option = "-c";
    std::string text = kServe;
    std::string package = package_beside(program);
    const std::array<char*, 5> words{python.data(), option.data(), text.data(), package.data(),
                                     nullptr};
    ::execvp(python.c_str(), words.data());
    print_error({.what = fmt::format("mcp: {} cannot be started: {}", python, std::strerror(errno)),
                 .hint = "install Python 3.10 or newer, or set DDPDOCTOR_PYTHON to it"});
    return kNotObserved;
  }
};

}  // namespace

std::unique_ptr<Action> declare_mcp(CLI::App& /*app*/) {
  return std::make_unique<Mcp>();
}

}  // namespace ddpdoctor::cli

// SPDX-License-Identifier: Apache-2.0
// The only list of commands. A command declares its options and returns the action to perform once
// they are parsed.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "base/result.h"

namespace CLI {
class App;
}

namespace ddpdoctor::cli {

/// A command with its parsed options.
class Action {
 public:
  Action() = default;
  Action(const Action&) = delete;
  Action& operator=(const Action&) = delete;
  Action(Action&&) = delete;
  Action& operator=(Action&&) = delete;
  virtual ~Action() = default;

  /// Performs it; returns the exit status, or why it was refused (exit status 2).
  virtual base::Result<int> run() = 0;
};

struct Command {
  std::string_view name;
  std::string_view summary;
  std::unique_ptr<Action> (*declare)(CLI::App& app);
  std::string_view examples{};  // lines to copy, each with an explanation
  std::string_view statuses{};  // "0 no finding, 1 findings"
  bool hidden = false;          // listed nowhere: internal
};

std::span<const Command> commands();

std::unique_ptr<Action> declare_attach(CLI::App& app);
std::unique_ptr<Action> declare_run(CLI::App& app);
std::unique_ptr<Action> declare_report(CLI::App& app);
std::unique_ptr<Action> declare_collect(CLI::App& app);
std::unique_ptr<Action> declare_explain(CLI::App& app);
std::unique_ptr<Action> declare_check(CLI::App& app);
std::unique_ptr<Action> declare_clean(CLI::App& app);
std::unique_ptr<Action> declare_watch(CLI::App& app);
std::unique_ptr<Action> declare_pyspy(CLI::App& app);
std::unique_ptr<Action> declare_capture(CLI::App& app);
std::unique_ptr<Action> declare_mcp(CLI::App& app);
std::unique_ptr<Action> declare_completion(CLI::App& app);
std::unique_ptr<Action> declare_man(CLI::App& app);

}  // namespace ddpdoctor::cli

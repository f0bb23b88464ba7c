// SPDX-License-Identifier: Apache-2.0
// ddpdoctor clean: lists what dead jobs left here, with owners; removes it after a yes.
#include <algorithm>
#include <cstdio>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/command.h"
#include "cli/exit_codes.h"
#include "cli/output.h"
#include "cli/terminal.h"
#include "cli/usage.h"
#include "collector/leftovers/leftover.h"
#include "viewer/leftovers.h"

namespace ddpdoctor::cli {

namespace {

using leftovers::Leftover;

constexpr double kOldest = 365 * 86400.0;

/// A yes typed at the terminal; any other answer is a no.
bool asked(const std::string& what) {
  fmt::print(stderr, "remove {}? [y/N] ", what);
  std::fflush(stderr);
  std::string answer;
  for (int c = std::getchar(); c != EOF && c != '\n'; c = std::getchar()) {
    answer += static_cast<char>(c);
  }
  return answer == "y" || answer == "Y" || answer == "yes";
}

class Clean : public Action {
 public:
  explicit Clean(CLI::App& app) {
    app.add_flag("--yes", yes_, "remove without asking");
    app.add_option("--older-than", older_than_, "leave alone what changed in the last S seconds")
        ->type_name("S")
        ->capture_default_str();
    app.add_option("--format", format_, "text or json")->type_name("FORMAT")->capture_default_str();
  }

  base::Result<int> run() override {
    if (format_ != "text" && format_ != "json") {
      return base::failure(fmt::format("--format {}: expected text or json", format_));
    }
    if (!(older_than_ >= 0 && older_than_ <= kOldest)) {
      return base::failure(
          fmt::format("--older-than {}: expected 0 to {} seconds", older_than_, kOldest));
    }
    const leftovers::Scope scope = leftovers::scope_here(older_than_);
    const std::vector<Leftover> found = leftovers::find(scope);
    if (format_ == "text" && !print(viewer::leftovers_text(found, text_width()))) {
      return kNotObserved;
    }
    std::vector<Leftover> ours;
    std::copy_if(found.begin(), found.end(), std::back_inserter(ours),
                 [](const Leftover& one) { return one.state == leftovers::State::kFree; });
    const auto removed = wanted(ours) ? remove(ours, scope) : std::vector<std::string>{};
    const std::string last = format_ == "json" ? viewer::leftovers_json(found, removed)
                                               : conclusion(found, ours, removed);
    if (!print(last)) {
      return kNotObserved;
    }
    const auto own = std::count_if(found.begin(), found.end(),
                                   [&scope](const Leftover& one) { return one.uid == scope.uid; });
    return std::ssize(removed) == own ? kNothingFound : kFound;  // other users' leftovers stay
  }

 private:
  [[nodiscard]] bool wanted(const std::vector<Leftover>& ours) const {
    const bool terminal = ::isatty(STDIN_FILENO) == 1 && ::isatty(STDERR_FILENO) == 1;
    return !ours.empty() &&
           (yes_ || (terminal && format_ == "text" && asked(viewer::leftovers_sum(ours))));
  }

  static std::vector<std::string> remove(const std::vector<Leftover>& ours,
                                         const leftovers::Scope& scope) {
    std::vector<std::string> removed;
    for (const Leftover& one : ours) {
      if (const auto done = leftovers::remove(one, scope); done) {
        removed.push_back(one.name);
      } else {
        print_error(done.error());
      }
    }
    return removed;
  }

  [[nodiscard]] std::string conclusion(const std::vector<Leftover>& found,
                                       const std::vector<Leftover>& ours,
                                       const std::vector<std::string>& removed) const {
    if (found.empty()) {
      return "no leftovers found\n";
    }
    if (!removed.empty()) {
      return fmt::format("{} of {} removed\n", removed.size(), found.size());
    }
    if (ours.empty()) {
      return "this user may not remove any of these\n";
    }
    return fmt::format("not removed: {}{}\n", viewer::leftovers_sum(ours),
                       yes_ ? "" : "; ddpdoctor clean --yes removes it");
  }

  bool yes_ = false;
  double older_than_ = 60;
  std::string format_ = "text";
};

}  // namespace

std::unique_ptr<Action> declare_clean(CLI::App& app) {
  return std::make_unique<Clean>(app);
}

}  // namespace ddpdoctor::cli

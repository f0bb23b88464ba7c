// SPDX-License-Identifier: Apache-2.0
// ddpdoctor capture: what `attach --hosts` and similar options run on each node; not for users.
#include <CLI/CLI.hpp>

#include "cli/command.h"
#include "cli/exit_codes.h"
#include "cli/memory_limit.h"
#include "collector/nodes/launchers.h"
#include "collector/nodes/respond.h"

namespace ddpdoctor::cli {

namespace {

class Capture : public Action {
 public:
  explicit Capture(CLI::App& app) {
    app.add_option("--session", options_.session)->required();
    app.add_option("--wait", options_.wait);
    app.add_option("--limit", options_.limit);
    app.add_option("--job", job_);
    app.add_option("--variable", options_.filter.variable);
    app.add_option("--samples", options_.observe.samples);
    app.add_option("--interval", options_.observe.interval);
    app.add_flag("--no-stop", no_stop_);
    app.add_flag("--no-values", no_values_);
  }

  base::Result<int> run() override {
    limit_memory();
    options_.filter.text = nodes::from_word(job_);
    options_.observe.allow_stop = !no_stop_;
    options_.observe.values = !no_values_;
    return nodes::respond(options_) ? kNothingFound : kNotObserved;
  }

 private:
  nodes::RespondOptions options_;
  std::string job_;
  bool no_stop_ = false;
  bool no_values_ = false;
};

}  // namespace

std::unique_ptr<Action> declare_capture(CLI::App& app) {
  return std::make_unique<Capture>(app);
}

}  // namespace ddpdoctor::cli

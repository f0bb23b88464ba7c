// SPDX-License-Identifier: Apache-2.0
// ddpdoctor attach PID: for a job that hangs now and was started without ddpdoctor.
#include <limits>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/attach_nodes.h"
#include "cli/command.h"
#include "cli/exit_codes.h"
#include "cli/memory_limit.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/ras.h"
#include "cli/usage.h"
#include "collector/diagnosis/diagnosis.h"
#include "collector/diagnosis/several_hosts.h"
#include "collector/monitor/chosen_job.h"
#include "collector/monitor/observe.h"
#include "collector/monitor/ras.h"

namespace ddpdoctor::cli {

namespace {

constexpr int kMostSamples = 1000;
constexpr double kLongestInterval = 3600;

class Attach : public Action {
 public:
  explicit Attach(CLI::App& app) {
    app.add_option("pid", pid_, "any process of the job: launcher, rank or worker")
        ->type_name("PID");
    app.add_flag("--no-tree", no_tree_, "read this process only, not the whole job");
    app.add_flag("--no-stop", no_stop_, "never stop a thread, not even for microseconds");
    app.add_flag("--no-values", no_values_, "read no values of variables");
    app.add_option("--samples", options_.samples, "number of snapshots")
        ->type_name("N")
        ->capture_default_str();
    app.add_option("--interval", options_.interval, "seconds between two snapshots")
        ->type_name("S")
        ->capture_default_str();
    declare_nodes(app, nodes_);
    declare_output(app, output_);
  }

  base::Result<int> run() override {
    if (const auto sound = check(nodes_); !sound) {
      return tl::make_unexpected(sound.error());
    }
    if (pid_.empty() && !nodes_.wanted()) {
      return base::failure(
          "attach: no PID was given",
          "ddpdoctor attach PID, with the pid of any process of the job; for a job "
          "on many nodes --slurm, --hosts, --kubernetes or --ray");
    }
    if (options_.samples < 1 || options_.samples > kMostSamples) {
      return base::failure(fmt::format("--samples {}: expected a number from 1 to {}",
                                       options_.samples, kMostSamples));
    }
    if (!(options_.interval >= 0 && options_.interval <= kLongestInterval)) {
      return base::failure(fmt::format("--interval {}: expected 0 to {} seconds", options_.interval,
                                       kLongestInterval));
    }
    options_.whole_tree = !no_tree_;
    options_.allow_stop = !no_stop_;
    options_.values = !no_values_;
    return nodes_.wanted() ? run_on_nodes() : run_here();
  }

 private:
  base::Result<int> run_here() {
    const auto pid =
        static_cast<pid_t>(TRY(number(pid_, kPid, 1, std::numeric_limits<pid_t>::max())));
    const Output output = TRY(Output::create(output_));
    limit_memory();
    monitor::JobChoice chosen{.pid = pid, .note = {}};
    monitor::ObserveOptions options = options_;
    if (!no_tree_) {
      auto choice = monitor::choose_job(pid);
      if (!choice) {
        print_error(choice.error());
        return kNotObserved;
      }
      chosen = std::move(*choice);
      options.processes = &chosen.processes;
    }
    const Progress progress(fmt::format("reading the job of PID {} …", chosen.pid));
    auto job = monitor::observe(chosen.pid, options);
    if (!job) {
      print_error(job.error());
      return kNotObserved;
    }
    if (!chosen.note.empty()) {
      job->coverage.warnings.push_back(std::move(chosen.note));
    }
    monitor::note_what_it_is_not(*job);
    add_ras(*job, monitor::two_ras_answers(*job));
    return output.present(diagnosis::diagnose(*job));
  }

  base::Result<int> run_on_nodes() {
    if (!pid_.empty() || no_tree_) {
      return base::failure("attach: PID and --no-tree work on one node only",
                           "leave them out: each node finds its part of the job by itself");
    }
    const Output output = TRY(Output::create(output_));
    auto job = look_at_nodes(nodes_, options_);
    if (!job) {
      print_error(job.error());
      return kNotObserved;
    }
    return output.present(diagnosis::diagnose_hosts(*job));
  }

  std::string pid_;
  bool no_tree_ = false;
  bool no_stop_ = false;
  bool no_values_ = false;
  monitor::ObserveOptions options_;
  NodeOptions nodes_;
  OutputOptions output_;
};

}  // namespace

std::unique_ptr<Action> declare_attach(CLI::App& app) {
  return std::make_unique<Attach>(app);
}

}  // namespace ddpdoctor::cli

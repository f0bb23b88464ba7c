// SPDX-License-Identifier: Apache-2.0
// ddpdoctor run -- CMD: runs the command unchanged and reports when it hangs, dies or computes
// wrong results.
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/command.h"
#include "cli/exit_codes.h"
#include "cli/nats_options.h"
#include "cli/reporter.h"
#include "cli/run_nodes.h"
#include "cli/usage.h"
#include "collector/monitor/launch.h"
#include "collector/monitor/spool.h"
#include "collector/monitor/supervise.h"

namespace ddpdoctor::cli {
namespace {

constexpr double kLongestRun = 7 * 86400.0;

struct RunOptions {
  monitor::SuperviseOptions supervise;
  std::string on_hang = "report";
  std::string spool;
  ReportOptions report;
  NatsOptions nats;
  std::vector<std::string> command;
};

class Run : public Action {
 public:
  explicit Run(CLI::App& app) {
    app.add_option("--hang-timeout", options_.supervise.hang_timeout,
                   "seconds without a new collective before ddpdoctor inspects the job")
        ->type_name("S")
        ->capture_default_str();
    app.add_option(
           "--on-hang", options_.on_hang,
           "report: print the report and keep watching; kill: print it and end the job (exit 124)")
        ->type_name("report|kill")
        ->capture_default_str();
    app.add_option("--on-hang-exec", options_.report.on_hang_exec,
                   "shell command to run once on a hang; DDPDOCTOR_REPORT_DIR names the folder of "
                   "the report")
        ->type_name("CMD");
    app.add_option("--report-dir", options_.report.folder,
                   "folder for report.json and its companions")
        ->type_name("DIR")
        ->capture_default_str();
    app.add_option("--spool", options_.spool, "folder in which processes record; kept afterwards")
        ->type_name("DIR");
    app.add_flag("--always", options_.report.always,
                 "write a report even when no problem is found");
    app.add_flag("--no-values", no_values_, "read no values of variables");
    app.add_flag("--ci", options_.report.ci,
                 "end the job on a hang; JUnit, SARIF and Markdown beside the report");
    app.add_option("--webhook-file", options_.report.webhook,
                   "file that holds the address of a chat's webhook; it gets the finding on a hang")
        ->type_name("FILE");
    declare_nats(
        app, options_.nats,
        "report to the NATS server at URL how far the ranks of this node are; `embedded`: the "
        "node of rank 0 starts one");
    app.add_option(
           "--metrics", metrics_,
           "with --nats: serve metrics for Prometheus at [HOST]:PORT, on the node of rank 0")
        ->type_name("ADDR")
        ->group("A job on many nodes");
    app.add_option("--otlp", otlp_,
                   "with --nats: send the same metrics to an OpenTelemetry collector, from the "
                   "node of rank 0")
        ->type_name("URL")
        ->group("A job on many nodes");
    app.add_option("command", options_.command, "the command and its arguments, after --")
        ->type_name("CMD");
    app.positionals_at_end();
  }

  base::Result<int> run() override {
    if (options_.command.empty()) {
      return base::failure("run: no command was given",
                           "ddpdoctor run -- torchrun --nproc_per_node=4 train.py");
    }
    if (options_.on_hang != "report" && options_.on_hang != "kill") {
      return base::failure(fmt::format("--on-hang {}: expected report or kill", options_.on_hang));
    }
    if (!(options_.supervise.hang_timeout > 0 && options_.supervise.hang_timeout <= kLongestRun)) {
      return base::failure(fmt::format("--hang-timeout {}: expected 0 to {} seconds",
                                       options_.supervise.hang_timeout, kLongestRun));
    }
    options_.supervise.kill_on_hang = options_.report.ci || options_.on_hang == "kill";
    options_.supervise.values = !no_values_;
    options_.report.here = !options_.nats.wanted();
    if (auto sound = complete(options_.nats); !sound) {
      return tl::make_unexpected(sound.error());
    }
    return watched();
  }

 private:
  base::Result<int> watched() {
    const monitor::Spool spool = TRY(monitor::Spool::open(options_.spool));
    const std::string agent = monitor::find_agent();
    if (agent.empty()) {
      print_error({.what = "libddpdoctor_agent.so is not beside this program: the job is watched "
                           "without its recording",
                   .hint = {}});
    }
    monitor::block_signals();
    std::unique_ptr<RunNodes> nodes;
    if (options_.nats.wanted()) {
      nodes = TRY(RunNodes::create(options_.nats, collector_words()));
    }
    const auto child =
        monitor::launch({.command = options_.command, .spool = spool.folder(), .agent = agent});
    if (!child) {
      print_error(child.error().error);
      return child.error().status;
    }
    if (nodes) {
      nodes->begin(spool.folder());
      options_.supervise.company = &nodes->link();
    }
    return stand_beside(*child, spool.folder(), nodes.get());
  }

  int stand_beside(pid_t child, const std::string& spool, RunNodes* nodes) {
    Reporter reporter(options_.report);
    std::optional<model::JobModel> last;
    const monitor::Outcome outcome = monitor::supervise(
        child, spool, options_.supervise,
        [&](model::JobModel job, monitor::Occasion occasion) -> monitor::Opinion {
          if (occasion == monitor::Occasion::kAsked) {
            nodes->link().answer(job);
            return {};
          }
          if (occasion == monitor::Occasion::kEnded && nodes != nullptr) {
            last = std::move(job);
            return nodes->link().leads() ? monitor::Opinion{} : reporter.hear(*last, occasion);
          }
          return reporter.hear(std::move(job), occasion);
        });
    if (nodes != nullptr) {
      nodes->leave(last ? &*last : nullptr, outcome.status);
    }
    if (nodes == nullptr || !nodes->link().leads()) {
      reporter.finish();
    }
    if (outcome.ended_by_us && reporter.found()) {
      reporter.last_word();
    } else if (outcome.gave_up_waiting) {
      reporter.say_suspicion();
    }
    return outcome.status;
  }

  /// Options for the collector that this node may start for all nodes.
  [[nodiscard]] std::vector<std::string> collector_words() const {
    std::vector<std::string> words{"--report-dir", options_.report.folder, "--hang-timeout",
                                   fmt::format("{:g}", options_.supervise.hang_timeout)};
    const auto add = [&words](const char* option, const std::string& value) {
      if (!value.empty()) {
        words.insert(words.end(), {option, value});
      }
    };
    add("--on-hang-exec", options_.report.on_hang_exec);
    add("--webhook-file", options_.report.webhook);
    add("--metrics", metrics_);
    add("--otlp", otlp_);
    if (options_.report.always) {
      words.emplace_back("--always");
    }
    if (options_.report.ci) {
      words.emplace_back("--ci");
    }
    return words;
  }

  RunOptions options_;
  std::string metrics_;
  std::string otlp_;
  bool no_values_ = false;
};

}  // namespace

std::unique_ptr<Action> declare_run(CLI::App& app) {
  return std::make_unique<Run>(app);
}

}  // namespace ddpdoctor::cli

// SPDX-License-Identifier: Apache-2.0
// ddpdoctor run -- CMD: the command as it would be without us, until it hangs, dies or computes
// nonsense.
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <set>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <sys/stat.h>

#include "base/host_name.h"
#include "cli/command.h"
#include "cli/exit_codes.h"
#include "cli/file_writer.h"
#include "cli/hang_command.h"
#include "cli/renderings.h"
#include "cli/usage.h"
#include "collector/detectors/detector.h"
#include "collector/diagnosis/diagnosis.h"
#include "collector/model/questions.h"
#include "collector/monitor/launch.h"
#include "collector/monitor/spool.h"
#include "collector/monitor/supervise.h"
#include "viewer/render.h"

namespace ddpdoctor::cli {
namespace {

constexpr double kLongestTimeout = 7 * 86400.0;

struct RunOptions {
  monitor::SuperviseOptions supervise;
  std::string on_hang = "report";
  std::string on_hang_exec;
  std::string report_dir = "ddpdoctor-report";
  std::string spool;
  bool always = false;
  bool ci = false;
  std::vector<std::string> command;
};

/// Prints findings on stderr as they come and keeps the newest report worth keeping.
class Reporter {
 public:
  explicit Reporter(const RunOptions& options) : options_(options) {}

  monitor::Opinion hear(model::JobModel job, monitor::Occasion occasion) {
    if (occasion == monitor::Occasion::kAhead) {
      return {.finding = warn(job), .hang = false};
    }
    auto kept = std::make_unique<model::JobModel>(std::move(job));
    say_where_and_when(*kept);
    const diagnosis::Diagnosis diagnosis = diagnosis::diagnose(*kept);
    const monitor::Opinion opinion{
        .finding = is_sure(diagnosis),
        .hang = diagnosis.verdict == diagnosis::Verdict::kHang && !diagnosis.findings.empty()};
    if (found_ && (is_another_life(*kept) || diagnosis::starts_again(*kept))) {
      found_ = false;  // the job was started again: what was said is over
      suspected_ = false;
    }
    if (opinion.finding) {
      say(diagnosis);
      accused_ = rank_pids(*kept);
    } else if (occasion == monitor::Occasion::kSuspected && !diagnosis.findings.empty()) {
      suspicion_ = viewer::text(diagnosis, {});
    }
    // What was seen while the job stood still tells more than what is left of it afterwards; of
    // one that went on in spite of a finding, the end belongs to the report. A signal often reaches
    // the job before us: then it shows how it ends, not how it stood.
    const bool says_something =
        !diagnosis.findings.empty() && diagnosis.findings.front().kind != "undetermined";
    const bool knows_more = occasion == monitor::Occasion::kEnded || says_something || !suspected_;
    const bool while_it_ends = occasion == monitor::Occasion::kInterrupted && suspected_;
    const bool better =
        opinion.finding || (!found_ && (!written_ || (knows_more && !while_it_ends)));
    const bool went_on = went_on_ && opinion.finding && identity(diagnosis) == said_;
    if (better && (!found_ || occasion != monitor::Occasion::kEnded || went_on)) {
      write(diagnosis, opinion.finding);
      went_on_ = diagnosis.verdict == diagnosis::Verdict::kRunning;
      suspected_ = says_something;
    }
    found_ = found_ || opinion.finding;
    if (opinion.hang && opinion.finding) {
      tell_owner();
    }
    return opinion;
  }

  /// Once more, below what the ended job wrote of its end.
  void last_word() {
    fmt::print(stderr, "\nddpdoctor ended the job: {}{}\n", summary_,
               written_ ? fmt::format("\n  report: {}/report.html", options_.report_dir) : "");
  }

  /// Who ends a job by hand because it stands still wants to know what was only suspected, too.
  void say_suspicion() {
    if (!found_ && !suspicion_.empty()) {
      fmt::print(stderr, "\n{}\n", suspicion_);
    }
  }

  /// The report of a job of which nothing was heard (stopped by its owner, or ended before we
  /// looked).
  void finish() {
    if (!written_ && (options_.always || options_.ci)) {
      model::JobModel nothing;
      say_where_and_when(nothing);
      write(diagnosis::diagnose(nothing), false);
    }
  }

 private:
  /// Of a job of which nothing is known at all, so that its report is of today and of this machine.
  static void say_where_and_when(model::JobModel& job) {
    const bool nobody = std::all_of(job.observations.begin(), job.observations.end(),
                                    [](const auto& look) { return look.processes.empty(); });
    if (!nobody || !job.collectives.empty() || !job.facts.empty() || !job.logs.empty()) {
      return;
    }
    job.hosts = {base::host_name()};
    job.observations.resize(1);
    job.observations.front().time =
        std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  }

  /// What lies ahead of a job that trains: no more than a line, for it goes on.
  static bool warn(const model::JobModel& job) {
    const diagnosis::Diagnosis diagnosis = diagnosis::diagnose(job);
    const auto ahead = std::find_if(
        diagnosis.findings.begin(), diagnosis.findings.end(),
        [](const detectors::Finding& finding) {
          const bool leak = detectors::find(finding.kind)->effect == detectors::Effect::kLeak;
          return (finding.ahead || leak) && finding.confidence != detectors::Confidence::kPossible;
        });
    if (ahead == diagnosis.findings.end()) {
      return false;
    }
    fmt::print(stderr, "\nddpdoctor: {} ({}), if nothing changes: {}\n", ahead->kind,
               detectors::confidence_name(ahead->confidence), ahead->summary);
    return true;
  }

  /// Once: what the owner wants to be done on a hang.
  void tell_owner() {
    if (told_ || options_.on_hang_exec.empty()) {
      return;
    }
    told_ = true;
    if (const auto done = run_hang_command(options_.on_hang_exec, options_.report_dir); !done) {
      print_error(done.error());
    }
  }

  static std::set<pid_t> rank_pids(const model::JobModel& job) {
    std::set<pid_t> out;
    const model::Observation* now = model::latest(job);
    for (std::size_t i = 0; now != nullptr && i < now->processes.size(); ++i) {
      if (now->processes[i].role == model::Role::kRank) {
        out.insert(now->processes[i].pid);
      }
    }
    return out;
  }

  /// Other processes are the ranks now than when something was last said.
  [[nodiscard]] bool is_another_life(const model::JobModel& job) const {
    const std::set<pid_t> now = rank_pids(job);
    return !now.empty() && std::none_of(now.begin(), now.end(),
                                        [this](pid_t pid) { return accused_.contains(pid); });
  }

  static bool is_sure(const diagnosis::Diagnosis& diagnosis) {
    return std::any_of(diagnosis.findings.begin(), diagnosis.findings.end(),
                       [](const detectors::Finding& finding) {
                         return finding.confidence != detectors::Confidence::kPossible &&
                                finding.kind != "undetermined";
                       });
  }

  /// Kind and culprits of the first finding.
  static std::string identity(const diagnosis::Diagnosis& diagnosis) {
    const detectors::Finding& first = diagnosis.findings.front();
    return fmt::format("{} {}", first.kind, first.culprits.ranges());
  }

  void say(const diagnosis::Diagnosis& diagnosis) {
    if (identity(diagnosis) == said_) {
      return;
    }
    said_ = identity(diagnosis);
    summary_ = diagnosis.findings.front().summary;
    viewer::TextOptions text;
    fmt::print(stderr, "\n{}\n", viewer::text(diagnosis, text));
    // NOLINTNEXTLINE(concurrency-mt-unsafe): nobody here calls setenv
    if (options_.ci && std::getenv("GITHUB_ACTIONS") != nullptr) {
      std::error_code error;
      fmt::print(stderr, "{}",
                 viewer::github(diagnosis, std::filesystem::current_path(error).string()));
    }
  }

  void write(const diagnosis::Diagnosis& diagnosis, bool finding) {
    if (!finding && !options_.always && !options_.ci) {
      return;
    }
    if (::mkdir(options_.report_dir.c_str(), 0755) != 0 && errno != EEXIST) {
      warn_once(fmt::format("{}: {}", options_.report_dir, std::strerror(errno)));
      return;
    }
    std::error_code error;
    const std::string folder = std::filesystem::current_path(error).string();
    std::vector<std::string> names{"report.json", "report.html", "job.ddpd"};
    if (options_.ci) {
      names.insert(names.end(), {"report.xml", "report.sarif", "report.md"});
    }
    for (const std::string& name : names) {
      const auto rendering = rendering_of_file(name);
      if (!rendering || (*rendering)->render == nullptr) {
        continue;
      }
      const std::string path = options_.report_dir + "/" + name;
      if (const auto done = write_whole(path, (*rendering)->render(diagnosis, folder)); !done) {
        warn_once(done.error().what);
      }
    }
    written_ = true;
  }

  void warn_once(const std::string& message) {
    if (!warned_) {
      print_error({.what = message, .hint = "the report could not be written; the job goes on"});
    }
    warned_ = true;
  }

  const RunOptions& options_;
  std::string said_;
  std::string summary_;      // of the finding said last
  std::string suspicion_;    // what was last seen in a standstill and is not sure, as text
  std::set<pid_t> accused_;  // the ranks of the job when something was last said
  bool found_ = false;
  bool went_on_ = false;    // the job ran when the report was written
  bool suspected_ = false;  // the report that is written names something
  bool told_ = false;
  bool written_ = false;
  bool warned_ = false;
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
    app.add_option("--on-hang-exec", options_.on_hang_exec,
                   "shell command to run once on a hang; DDPDOCTOR_REPORT_DIR names the folder of "
                   "the report")
        ->type_name("CMD");
    app.add_option("--report-dir", options_.report_dir, "folder for report.json and its companions")
        ->type_name("DIR")
        ->capture_default_str();
    app.add_option("--spool", options_.spool, "folder in which processes record; kept afterwards")
        ->type_name("DIR");
    app.add_flag("--always", options_.always, "write a report even when no problem is found");
    app.add_flag("--no-values", no_values_, "read no values of variables");
    app.add_flag("--ci", options_.ci,
                 "end the job on a hang; JUnit, SARIF and Markdown beside the report");
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
    if (!(options_.supervise.hang_timeout > 0 &&
          options_.supervise.hang_timeout <= kLongestTimeout)) {
      return base::failure(fmt::format("--hang-timeout {}: expected 0 to {} seconds",
                                       options_.supervise.hang_timeout, kLongestTimeout));
    }
    options_.supervise.kill_on_hang = options_.ci || options_.on_hang == "kill";
    options_.supervise.values = !no_values_;
    const monitor::Spool spool = TRY(monitor::Spool::open(options_.spool));
    const std::string agent = monitor::find_agent();
    if (agent.empty()) {
      print_error({.what = "libddpdoctor_agent.so is not beside this program: the job is watched "
                           "without its recording",
                   .hint = {}});
    }
    monitor::block_signals();
    const auto child =
        monitor::launch({.command = options_.command, .spool = spool.folder(), .agent = agent});
    if (!child) {
      print_error(child.error().error);
      return child.error().status;
    }
    Reporter reporter(options_);
    const monitor::Outcome outcome =
        monitor::supervise(*child, spool.folder(), options_.supervise,
                           [&reporter](model::JobModel job, monitor::Occasion occasion) {
                             return reporter.hear(std::move(job), occasion);
                           });
    reporter.finish();
    if (outcome.ended_by_us) {
      reporter.last_word();
    } else if (outcome.gave_up_waiting) {
      reporter.say_suspicion();
    }
    return outcome.status;
  }

 private:
  RunOptions options_;
  bool no_values_ = false;
};

}  // namespace

std::unique_ptr<Action> declare_run(CLI::App& app) {
  return std::make_unique<Run>(app);
}

}  // namespace ddpdoctor::cli

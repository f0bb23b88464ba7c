// SPDX-License-Identifier: Apache-2.0
// Handles each diagnosis of a job: reports each finding once, keeps the newest useful report, runs
// the command of --on-hang-exec once. The same for jobs on one node and on many.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>

#include <sys/types.h>

#include "collector/diagnosis/diagnosis.h"
#include "collector/model/job_model.h"
#include "collector/monitor/supervise.h"

namespace ddpdoctor::cli {

/// Where reports go, as typed.
struct ReportOptions {
  std::string folder = "ddpdoctor-report";  // empty = none is written
  std::string on_hang_exec;
  std::string webhook;  // an address; empty = none
  bool always = false;
  bool ci = false;
  bool here = false;  // the job ran on this machine only
};

class Reporter {
 public:
  /// Shows a diagnosis to people.
  using Show = std::function<void(const diagnosis::Diagnosis&)>;

  /// Prints findings as text on stderr.
  explicit Reporter(const ReportOptions& options);
  Reporter(const ReportOptions& options, Show show) : options_(options), show_(std::move(show)) {}

  monitor::Opinion hear(model::JobModel job, monitor::Occasion occasion);
  /// Prints the report once more, below the last output of the ended job.
  void last_word() const;
  /// A user who ends a hung job by hand also wants to see findings that were only suspected.
  void say_suspicion() const;
  /// The report of a job without any earlier one (stopped by its user, or ended before a snapshot).
  void finish();
  /// A certain or likely finding was reported for the job as it runs now.
  [[nodiscard]] bool found() const {
    return found_;
  }
  /// The summary of the last report; empty = none.
  [[nodiscard]] const std::string& summary() const {
    return summary_;
  }

 private:
  [[nodiscard]] bool is_another_life(const model::JobModel& job) const;
  void keep(const diagnosis::Diagnosis& diagnosis, monitor::Occasion occasion, bool finding);
  void note_what_others_left(model::JobModel& job) const;
  void tell_owner(const diagnosis::Diagnosis& diagnosis);
  void say(const diagnosis::Diagnosis& diagnosis);
  void write(const diagnosis::Diagnosis& diagnosis, bool finding);
  void warn_once(const std::string& message);

  const ReportOptions& options_;
  Show show_;
  std::optional<model::Fact> foreseen_;  // what was said of the job while it ran
  std::string said_;
  std::string summary_;      // of the finding reported last
  std::string suspicion_;    // the last uncertain finding during a hang, as text
  std::set<pid_t> accused_;  // the ranks of the job at the last report
  bool found_ = false;
  bool went_on_ = false;    // the job ran when the report was written
  bool suspected_ = false;  // the written report contains a finding
  bool told_ = false;
  bool written_ = false;
  bool warned_ = false;
};

}  // namespace ddpdoctor::cli

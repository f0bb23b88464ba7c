// SPDX-License-Identifier: Apache-2.0
// What is made of a job each time it is looked at: findings are said once, the newest report worth
// keeping is kept, the command of --on-hang-exec is run once. The same for the job of one node and
// of many.
#pragma once

#include <functional>
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
};

class Reporter {
 public:
  /// Shows a diagnosis to people.
  using Show = std::function<void(const diagnosis::Diagnosis&)>;

  /// Findings as text on stderr.
  explicit Reporter(const ReportOptions& options);
  Reporter(const ReportOptions& options, Show show) : options_(options), show_(std::move(show)) {}

  monitor::Opinion hear(model::JobModel job, monitor::Occasion occasion);
  /// Once more, below what the ended job wrote of its end.
  void last_word() const;
  /// Who ends a job by hand because it stands still wants to know what was only suspected, too.
  void say_suspicion() const;
  /// The report of a job of which nothing was heard (stopped by its owner, or ended before we
  /// looked).
  void finish();
  /// Something certain or likely was said of the job as it runs now.
  [[nodiscard]] bool found() const {
    return found_;
  }
  /// What was said last; empty = nothing.
  [[nodiscard]] const std::string& summary() const {
    return summary_;
  }

 private:
  [[nodiscard]] bool is_another_life(const model::JobModel& job) const;
  void keep(const diagnosis::Diagnosis& diagnosis, monitor::Occasion occasion, bool finding);
  void tell_owner(const diagnosis::Diagnosis& diagnosis);
  void say(const diagnosis::Diagnosis& diagnosis);
  void write(const diagnosis::Diagnosis& diagnosis, bool finding);
  void warn_once(const std::string& message);

  const ReportOptions& options_;
  Show show_;
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

}  // namespace ddpdoctor::cli

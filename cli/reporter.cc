// SPDX-License-Identifier: Apache-2.0
#include "cli/reporter.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <sys/stat.h>

#include "base/host_name.h"
#include "cli/file_writer.h"
#include "cli/hang_command.h"
#include "cli/left_by_others.h"
#include "cli/renderings.h"
#include "cli/usage.h"
#include "cli/webhook.h"
#include "collector/detectors/detector.h"
#include "collector/diagnosis/several_hosts.h"
#include "collector/model/questions.h"
#include "viewer/render.h"

namespace ddpdoctor::cli {
namespace {

/// For a job without any evidence, so that its report has today's date and this machine.
void say_where_and_when(model::JobModel& job) {
  const bool no_process = std::all_of(job.observations.begin(), job.observations.end(),
                                      [](const auto& look) { return look.processes.empty(); });
  if (!no_process || !job.collectives.empty() || !job.facts.empty() || !job.logs.empty()) {
    return;
  }
  job.hosts = {base::host_name()};
  job.observations.resize(1);
  job.observations.front().time =
      std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// What was foreseen, for the report of the end: by then the loops and their lengths are gone.
model::Fact fact_of(const detectors::Finding& ahead) {
  model::Fact fact{.rank = {}, .pid = {}, .kind = "foreseen", .fields = {}};
  fact.fields["of"] = ahead.kind;
  std::vector<std::string> ranks;
  for (const model::Rank rank : ahead.culprits) {
    ranks.push_back(std::to_string(rank));
  }
  fact.fields["ranks"] = std::move(ranks);
  fact.fields["summary"] = ahead.summary;
  if (!ahead.locations.empty()) {
    const detectors::Location& where = ahead.locations.front();
    fact.fields["file"] = where.file;
    fact.fields["line"] = std::int64_t{where.line};
    fact.fields["function"] = where.function;
  }
  return fact;
}

/// A warning about the future of a running job: only one line, because the job continues.
std::optional<model::Fact> warn(const model::JobModel& job) {
  const diagnosis::Diagnosis diagnosis = diagnosis::diagnose(job);
  const auto ahead = std::find_if(
      diagnosis.findings.begin(), diagnosis.findings.end(), [](const detectors::Finding& finding) {
        const bool leak = detectors::find(finding.kind)->effect == detectors::Effect::kLeak;
        return (finding.ahead || leak) && finding.confidence != detectors::Confidence::kPossible;
      });
  if (ahead == diagnosis.findings.end()) {
    return std::nullopt;
  }
  fmt::print(stderr, "\nddpdoctor: {} ({}), if nothing changes: {}\n", ahead->kind,
             detectors::confidence_name(ahead->confidence), ahead->summary);
  return fact_of(*ahead);
}

std::set<pid_t> rank_pids(const model::JobModel& job) {
  std::set<pid_t> out;
  const model::Observation* now = model::latest(job);
  for (std::size_t i = 0; now != nullptr && i < now->processes.size(); ++i) {
    if (now->processes[i].role == model::Role::kRank) {
      out.insert(now->processes[i].pid);
    }
  }
  return out;
}

bool is_sure(const diagnosis::Diagnosis& diagnosis) {
  return std::any_of(diagnosis.findings.begin(), diagnosis.findings.end(),
                     [](const detectors::Finding& finding) {
                       return finding.confidence != detectors::Confidence::kPossible &&
                              finding.kind != "undetermined";
                     });
}

/// Kind and culprits of the first finding.
std::string identity(const diagnosis::Diagnosis& diagnosis) {
  const detectors::Finding& first = diagnosis.findings.front();
  return fmt::format("{} {}", first.kind, first.culprits.ranges());
}

}  // namespace

Reporter::Reporter(const ReportOptions& options)
    : Reporter(options, [](const diagnosis::Diagnosis& diagnosis) {
        fmt::print(stderr, "\n{}\n", viewer::text(diagnosis, {}));
      }) {}

monitor::Opinion Reporter::hear(model::JobModel job, monitor::Occasion occasion) {
  if (occasion == monitor::Occasion::kAhead) {
    const auto said = warn(job);
    foreseen_ = said ? said : foreseen_;
    return {.finding = said.has_value(), .hang = false};
  }
  auto kept = std::make_unique<model::JobModel>(std::move(job));
  if (foreseen_ && kept->ended) {
    kept->facts.push_back(*foreseen_);
  }
  say_where_and_when(*kept);
  const diagnosis::Diagnosis diagnosis = diagnosis::diagnose_hosts(*kept);
  if (occasion == monitor::Occasion::kEnded && diagnosis.findings.empty()) {
    note_what_others_left(*kept);
  }
  const monitor::Opinion opinion{
      .finding = is_sure(diagnosis),
      .hang = diagnosis.verdict == diagnosis::Verdict::kHang && !diagnosis.findings.empty()};
  if (found_ && (is_another_life(*kept) || diagnosis::starts_again(*kept))) {
    found_ = false;  // the job was restarted: earlier findings are over
    suspected_ = false;
  }
  if (opinion.finding) {
    say(diagnosis);
    accused_ = rank_pids(*kept);
  } else if (occasion == monitor::Occasion::kSuspected && !diagnosis.findings.empty()) {
    suspicion_ = viewer::text(diagnosis, {});
  }
  keep(diagnosis, occasion, opinion.finding);
  found_ = found_ || opinion.finding;
  if (opinion.hang && opinion.finding) {
    tell_owner(diagnosis);
  }
  return opinion;
}

// A snapshot during a hang shows more than one taken after the end; if the job continued in spite
// of a finding, the report shows its end. A signal often reaches the job before us: the evidence
// then shows its end, not the hang.
void Reporter::keep(const diagnosis::Diagnosis& diagnosis, monitor::Occasion occasion,
                    bool finding) {
  const bool says_something =
      !diagnosis.findings.empty() && diagnosis.findings.front().kind != "undetermined";
  const bool knows_more = occasion == monitor::Occasion::kEnded || says_something || !suspected_;
  const bool while_it_ends = occasion == monitor::Occasion::kInterrupted && suspected_;
  const bool better = finding || (!found_ && (!written_ || (knows_more && !while_it_ends)));
  const bool went_on = went_on_ && finding && identity(diagnosis) == said_;
  if (better && (!found_ || occasion != monitor::Occasion::kEnded || went_on)) {
    write(diagnosis, finding);
    went_on_ = diagnosis.verdict == diagnosis::Verdict::kRunning;
    suspected_ = says_something;
  }
}

void Reporter::last_word() const {
  fmt::print(stderr, "\nddpdoctor ended the job: {}{}\n", summary_,
             written_ ? fmt::format("\n  report: {}/report.html", options_.folder) : "");
}

void Reporter::say_suspicion() const {
  if (!found_ && !suspicion_.empty()) {
    fmt::print(stderr, "\n{}\n", suspicion_);
  }
}

void Reporter::finish() {
  if (!written_ && (options_.always || options_.ci)) {
    model::JobModel nothing;
    say_where_and_when(nothing);
    const diagnosis::Diagnosis diagnosis = diagnosis::diagnose(nothing);
    note_what_others_left(nothing);
    write(diagnosis, false);
  }
}

/// Only in reports that the user asked for: it reads the maps of all processes of this machine.
void Reporter::note_what_others_left(model::JobModel& job) const {
  constexpr double kYoungest = 60;  // seconds
  if (options_.here && (options_.always || options_.ci)) {
    add_left_by_others(job, leftovers::scope_here(kYoungest));
  }
}

/// Runs, once, what the user requested for a hang.
void Reporter::tell_owner(const diagnosis::Diagnosis& diagnosis) {
  if (told_) {
    return;
  }
  told_ = true;
  if (!options_.webhook.empty()) {
    if (const auto sent = send_webhook(options_.webhook, diagnosis); !sent) {
      print_error(sent.error());
    }
  }
  if (options_.on_hang_exec.empty()) {
    return;
  }
  if (const auto done = run_hang_command(options_.on_hang_exec, options_.folder); !done) {
    print_error(done.error());
  }
}

/// The ranks are other processes than at the last report.
bool Reporter::is_another_life(const model::JobModel& job) const {
  const std::set<pid_t> now = rank_pids(job);
  return !now.empty() &&
         std::none_of(now.begin(), now.end(), [this](pid_t pid) { return accused_.contains(pid); });
}

void Reporter::say(const diagnosis::Diagnosis& diagnosis) {
  if (identity(diagnosis) == said_) {
    return;
  }
  said_ = identity(diagnosis);
  summary_ = diagnosis.findings.front().summary;
  show_(diagnosis);
  // NOLINTNEXTLINE(concurrency-mt-unsafe): no code here calls setenv
  if (options_.ci && std::getenv("GITHUB_ACTIONS") != nullptr) {
    std::error_code error;
    fmt::print(stderr, "{}",
               viewer::github(diagnosis, std::filesystem::current_path(error).string()));
  }
}

void Reporter::write(const diagnosis::Diagnosis& diagnosis, bool finding) {
  if (options_.folder.empty() || (!finding && !options_.always && !options_.ci)) {
    return;
  }
  if (::mkdir(options_.folder.c_str(), 0755) != 0 && errno != EEXIST) {
    warn_once(fmt::format("{}: {}", options_.folder, std::strerror(errno)));
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
    const std::string path = options_.folder + "/" + name;
    if (const auto done = write_whole(path, (*rendering)->render(diagnosis, folder)); !done) {
      warn_once(done.error().what);
    }
  }
  written_ = true;
}

void Reporter::warn_once(const std::string& message) {
  if (!warned_) {
    print_error({.what = message, .hint = "the report could not be written; the job continues"});
  }
  warned_ = true;
}

}  // namespace ddpdoctor::cli

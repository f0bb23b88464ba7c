// SPDX-License-Identifier: Apache-2.0
#include "collector/monitor/supervise.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <unistd.h>
#include <vector>

#include <sys/wait.h>

#include "collector/model/building/add_recordings.h"
#include "collector/model/building/build_model.h"
#include "collector/model/building/polled_calls.h"
#include "collector/model/questions.h"
#include "collector/monitor/forecast.h"
#include "collector/monitor/fullest_shm.h"
#include "collector/monitor/left_behind.h"
#include "collector/monitor/process_tree.h"
#include "collector/monitor/spool.h"
#include "collector/monitor/strays.h"
#include "collector/sources/rings/reader.h"

namespace ddpdoctor::monitor {
namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;
using Recordings = std::vector<sources::Recording>;

constexpr std::chrono::milliseconds kSuperviseLook{100};
constexpr std::chrono::milliseconds kGrace{3000};
// A contradiction is complete when the slower rank's call has arrived and, if it aborts, its abort.
constexpr Seconds kSettle{0.7};
// A signal sent only to us is passed to the command; a shell that waits for its child does not act
// on it. Then the whole foreground group gets it, as from a terminal. Finally, an unattended job
// (--on-hang kill) is ended.
constexpr Seconds kPassOn{1.5};
constexpr Seconds kEndUnattended{12};
constexpr double kJustNow = 1;  // second; processes that ended since then were ended by the signal
// factor by which the interval grows between snapshots of a job without progress and without a
// finding
constexpr double kPatience = 2;
// A retry that has failed for a minute counts as a hang: a snapshot is taken right after a minute.
constexpr double kNoPause = 61;  // seconds

double next_look_after(double seconds) {
  const double later = seconds * kPatience;
  return seconds < kNoPause && later > kNoPause ? kNoPause : later;
}

sigset_t watched_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGCHLD}) {
    sigaddset(&set, number);
  }
  return set;
}

/// Waits for a signal for one check interval at most; nothing if none arrived.
std::optional<siginfo_t> next_signal() {
  const sigset_t set = watched_signals();
  const timespec time{.tv_sec = 0, .tv_nsec = std::chrono::nanoseconds(kSuperviseLook).count()};
  siginfo_t info{};
  return ::sigtimedwait(&set, &info, &time) > 0 ? std::optional(info) : std::nullopt;
}

/// A recorded rank no longer exists, and how it ended is unknown.
bool a_rank_ended(const model::JobModel& job, const std::vector<sources::Recording>& recordings) {
  return !job.observations.empty() &&
         std::any_of(recordings.begin(), recordings.end(), [&job](const auto& recording) {
           const model::Process* seen = model::process(job, recording.pid);
           const bool gone = seen == nullptr || seen->state == 'Z' || seen->state == 'X';
           return recording.rank && !recording.exit && gone;
         });
}

/// One run of supervise().
class Watch {
 public:
  Watch(pid_t child, const std::string& spool, const SuperviseOptions& options,
        const Listener& listener)
      : child_(child),
        spool_(spool),
        options_(options),
        listener_(listener),
        rings_(spool),
        forecast_(child),
        strays_(::getpid(), child) {}

  Outcome run() {
    while (!ended_) {
      if (const auto signal = next_signal()) {
        take(*signal);
      }
      reap();
      if (!ended_ && interrupted_) {
        insist();
      } else if (!ended_) {
        look();
      }
    }
    if (!outcome_.ended_by_us && !interrupted_) {
      after_the_end();
    }
    return outcome_;
  }

 private:
  void take(const siginfo_t& info) {
    if (info.si_signo == SIGCHLD) {
      return;
    }
    outcome_.gave_up_waiting = outcome_.gave_up_waiting || (!interrupted_ && looked_);
    const bool quiet_before = quiet() > Seconds(1);  // what follows takes time on a busy machine
    if (!interrupted_ && !quiet_before) {
      tell_of_a_running_job(info.si_code != SI_KERNEL);
    }
    // The terminal sends its signals to the whole foreground group, so the job already has them.
    if (info.si_code == SI_KERNEL) {
      interrupted_ = true;
      return;
    }
    // Takes the snapshot before the job unwinds, because afterwards nothing is left to see. An
    // earlier snapshot of the same hang is still valid.
    if (!interrupted_ && quiet_before && !looked_ && !led() && !unwinds()) {
      tell(Occasion::kInterrupted);
    }
    interrupted_ = true;
    interrupted_at_ = Clock::now();
    signal_ = info.si_signo;
    ::kill(child_, info.si_signo);
  }

  /// The sender also sent the signal to the job, and the job reacted first.
  [[nodiscard]] bool unwinds() const {
    std::vector<std::string> problems;
    const double now =
        std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
    const auto recordings = sources::read_spool(spool_, problems);
    return recordings &&
           std::any_of(recordings->begin(), recordings->end(), [now](const auto& recording) {
             return recording.exit && now - recording.exit->time < kJustNow;
           });
  }

  void insist() {
    const Seconds waited = Clock::now() - interrupted_at_;
    if (signal_ != 0 && !passed_on_ && waited > kPassOn) {
      passed_on_ = true;
      const pid_t group = ::getpgrp();
      for (const pid_t pid : descendants(::getpid())) {
        if (::getpgid(pid) == group) {
          ::kill(pid, signal_);
        }
      }
    }
    if (signal_ != 0 && options_.kill_on_hang && waited > kEndUnattended) {
      end_descendants(kGrace);
      ended_ = true;
      outcome_.status = 128 + signal_;
    }
  }

  void reap() {
    int status = 0;
    pid_t pid = 0;
    while ((pid = ::waitpid(-1, &status, WNOHANG)) > 0) {
      if (pid == child_) {
        ended_ = true;
        outcome_.status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
      }
    }
  }

  [[nodiscard]] Seconds quiet() const {
    return Clock::now() - last_beat_;
  }

  /// A contradiction is reported once by the rings: it is kept until it is examined.
  Pulse pulse() {
    const Pulse read = rings_.read();
    contradicted_ = contradicted_ || read.contradiction;
    return read;
  }

  /// A collector reads the whole job and reports on it.
  [[nodiscard]] bool led() const {
    return options_.company != nullptr && options_.company->leads();
  }

  [[nodiscard]] bool awaited() const {
    return options_.company != nullptr && options_.company->awaited();
  }

  void serve_company() {
    if (options_.company == nullptr) {
      return;
    }
    if (options_.company->wants_look()) {
      tell(Occasion::kAsked);
    }
    if (options_.kill_on_hang && options_.company->found_hang()) {
      end_it();
    }
  }

  void look() {
    serve_company();
    shm_.look();
    const Pulse now = pulse();
    if (now.collectives != beats_ || now.processes != processes_) {
      beats_ = now.collectives;
      processes_ = now.processes;
      last_beat_ = Clock::now();
      next_suspicion_ = options_.hang_timeout;
      looked_ = false;
    }
    look_for_strays();
    if ((contradicted_ || now.children_killed > killed_) && !proof_due_) {
      contradicted_ = false;
      proof_due_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(kSettle);
    }
    killed_ = std::max(killed_, now.children_killed);
    if (proof_due_ && Clock::now() >= *proof_due_) {
      proof_due_.reset();
      prove();
    } else if (quiet().count() >= next_suspicion_ && !led() && !awaited()) {
      next_suspicion_ = next_look_after(next_suspicion_);
      looked_ = true;
      consider(Occasion::kSuspected);
    } else {
      look_ahead(now.collectives);
    }
  }

  void prove() {
    if (awaited()) {
      proof_due_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(kSettle);
    } else if (led()) {
      options_.company->alarm();
    } else {
      consider(Occasion::kProvable);
    }
  }

  void look_ahead(std::uint64_t collectives) {
    auto job = forecast_.look(collectives, Clock::now());
    if (!job) {
      return;
    }
    std::vector<std::string> problems;
    if (const auto recordings = sources::read_spool(spool_, problems)) {
      model::add_recordings(*job, *recordings);
    }
    job->progress = model::Progress::kMoving;  // the rings show progress
    model::load_sources(*job);
    if (listener_(std::move(*job), Occasion::kAhead).finding) {
      forecast_.stop();
    }
  }

  /// Only while nothing makes progress: a training job has no stray processes.
  void look_for_strays() {
    const double now = quiet().count();
    if (now < strays_seen_) {
      strays_seen_ = 0;
    }
    if (now >= strays_seen_ + 1) {
      strays_seen_ = now;
      strays_.look(std::chrono::duration<double>(Clock::now().time_since_epoch()).count());
    }
  }

  /// The user ends a job that makes progress: this is the last moment to examine it. `untouched`:
  /// the signal has not reached the job yet.
  void tell_of_a_running_job(bool untouched) {
    std::vector<std::string> problems;
    const auto recordings = sources::read_spool(spool_, problems);
    model::JobModel job;
    if (untouched) {
      if (auto seen = observe(child_, {.values = false})) {
        job = std::move(*seen);
      }
    }
    if (recordings) {
      model::add_recordings(job, *recordings);
    }
    if (job.collectives.empty()) {
      return;  // nothing shows that it made progress
    }
    job.progress = model::Progress::kMoving;  // the rings show progress
    model::load_sources(job);
    listener_(std::move(job), Occasion::kInterrupted);
  }

  void consider(Occasion occasion) {
    const Opinion opinion = tell(occasion);
    if (opinion.hang && options_.kill_on_hang) {
      end_it();
    }
  }

  void end_it() {
    outcome_ = {.status = 124, .ended_by_us = true};
    end_descendants(kGrace);
    ended_ = true;
  }

  Opinion tell(Occasion occasion) {
    std::vector<std::string> problems;
    auto recordings = sources::read_spool(spool_, problems);
    const auto killed = pulse().children_killed;
    model::JobModel job;
    if (occasion != Occasion::kEnded) {
      if (auto seen = observe(child_, {.values = options_.values})) {
        job = std::move(*seen);
      }
    } else {
      job = processes_left(child_, outcome_.status, recordings.value_or(Recordings{}));
      job.ended = true;
    }
    // a child was killed, a process exited, or a thread polled NCCL during the snapshot
    if (pulse().children_killed != killed ||
        (recordings &&
         (a_rank_ended(job, *recordings) || model::some_call_is_polled(*recordings)))) {
      problems.clear();
      recordings = sources::read_spool(spool_, problems);
    }
    if (recordings && occasion == Occasion::kEnded) {
      forget_daemons(job, *recordings);
    }
    if (recordings) {
      model::add_recordings(job, *recordings);
      model::mark_polled_calls(job, *recordings);
    }
    if (occasion == Occasion::kEnded) {
      mark_segments_left(job);
    }
    if (occasion != Occasion::kEnded && !job.observations.empty()) {
      note_what_it_is_not(job);
      strays_.add_to(job);
    }
    add_fullest_shm(shm_, job);
    job.coverage.warnings.insert(job.coverage.warnings.end(), problems.begin(), problems.end());
    model::load_sources(job);
    return listener_(std::move(job), occasion);
  }

  void after_the_end() {
    tell(Occasion::kEnded);
  }

  pid_t child_;
  const std::string& spool_;
  const SuperviseOptions& options_;
  const Listener& listener_;
  PulseWatch rings_;
  Forecast forecast_;
  bool contradicted_ = false;
  FullestShm shm_;
  Strays strays_;
  double strays_seen_ = 0;  // seconds of quiet
  Outcome outcome_;
  bool ended_ = false;
  bool interrupted_ = false;
  Clock::time_point interrupted_at_;
  int signal_ = 0;  // sent by a process, not by the terminal
  bool passed_on_ = false;
  std::uint64_t beats_ = 0;
  std::size_t processes_ = 0;
  int killed_ = 0;
  Clock::time_point last_beat_ = Clock::now();
  double next_suspicion_ = options_.hang_timeout;
  bool looked_ = false;  // since the last progress
  std::optional<Clock::time_point> proof_due_;
};

}  // namespace

void block_signals() {
  const sigset_t set = watched_signals();
  ::sigprocmask(SIG_BLOCK, &set, nullptr);
}

Outcome supervise(pid_t child, const std::string& spool, const SuperviseOptions& options,
                  const Listener& listener) {
  return Watch(child, spool, options, listener).run();
}

}  // namespace ddpdoctor::monitor

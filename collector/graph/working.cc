// SPDX-License-Identifier: Apache-2.0
#include "collector/graph/working.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "collector/model/questions.h"
#include "collector/python_source/blocks.h"

namespace ddpdoctor::graph {
namespace {

constexpr double kBusyShare = 0.2;  // of one core; a sleep loop uses a hundredth of that

bool ran_since(const model::Process& before, const model::Thread& thread) {
  const auto earlier = std::find_if(before.threads.begin(), before.threads.end(),
                                    [&](const model::Thread& t) { return t.tid == thread.tid; });
  return earlier != before.threads.end() && earlier->run_count && thread.run_count &&
         *earlier->run_count != *thread.run_count;
}

// Bytes that went through files and pipes between the looks: saving to slow storage uses no CPU.
bool moved_bytes(const model::Process& before, const model::Process& now) {
  constexpr std::int64_t kWorthIt = 16384;  // a heartbeat in a log is less
  return before.io_bytes && now.io_bytes && *now.io_bytes - *before.io_bytes >= kWorthIt;
}

constexpr double kMoment = 60;     // seconds; who means to stop a job sleeps longer
constexpr double kPatience = 120;  // a connection that gives up then is waited for

/// `range(N)` with a number that nobody waits out: a loop for ever in other words.
bool is_endless_range(std::string_view iterated) {
  constexpr std::string_view kRange = "range(";
  constexpr long kManyRounds = 600;
  const std::size_t at = iterated.find(kRange);
  long rounds = 0;
  if (at == std::string_view::npos) {
    return false;
  }
  const std::string_view rest = iterated.substr(at + kRange.size());
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), rounds);
  const bool power = std::string_view(end, rest.data() + rest.size()).starts_with("**");
  return error == std::errc::result_out_of_range ||
         (error == std::errc() && (power || rounds > kManyRounds));
}

bool calls_any(std::string_view code, std::span<const std::string_view> functions) {
  return std::any_of(functions.begin(), functions.end(), [code](std::string_view function) {
    return code.find(function) != std::string_view::npos;
  });
}

/// "while (item := queue.get()) is not None": it ends when the work does.
bool takes_work(std::string_view condition) {
  constexpr std::array<std::string_view, 4> kTakers = {".get(", ".pop(", ".popleft(", "next("};
  return calls_any(condition, kTakers);
}

/// "while time.time() < end", and nothing but the clock ends it: it waits for nobody.
bool is_until_a_time(const python_source::Lines& lines, const python_source::Block& loop,
                     int line) {
  constexpr std::array<std::string_view, 3> kClocks = {"time()", "monotonic()", "perf_counter()"};
  const auto exits = python_source::loop_exits(lines, line);
  return calls_any(loop.condition, kClocks) &&
         std::none_of(exits.begin(), exits.end(),
                      [&loop](const python_source::Block& exit) { return exit.line > loop.line; });
}

/// "while True: connection = server.accept(); time.sleep(8); …": between two pieces of work it may
/// pause in each.
bool took_work_before(const python_source::Lines& lines, int loop, int line) {
  constexpr std::array<std::string_view, 4> kTakers = {".accept(", ".recv(", ".get(", ".popleft("};
  for (auto at = lines.upper_bound(loop); at != lines.end() && at->first < line; ++at) {
    if (calls_any(at->second, kTakers)) {
      return true;
    }
  }
  return false;
}

/// The innermost loop around a line is one that waits: `while`, unless a test of the rank stands
/// between, which makes the sleep a step of that rank in a loop of all.
bool in_waiting_loop(const python_source::Lines& lines, int line) {
  for (const python_source::Block& block : python_source::enclosing(lines, line)) {
    switch (block.kind) {
      case python_source::BlockKind::kWhile:
        return !takes_work(block.condition) && !took_work_before(lines, block.line, line) &&
               !is_until_a_time(lines, block, line);
      case python_source::BlockKind::kFor:
        return is_endless_range(block.condition);
      case python_source::BlockKind::kIf:
      case python_source::BlockKind::kElif:
        if (python_source::dependence(block.condition, lines, block.line) ==
            python_source::Dependence::kRank) {
          return false;
        }
        break;
      case python_source::BlockKind::kFunction:
        return false;
      default:
        break;
    }
  }
  return false;
}

/// `frame` is the user's, and no loop around it waits. Code that was typed ("<string>") has no
/// source and gets the benefit of the doubt.
bool in_bounded_user_code(const model::JobModel& job, const model::Thread& thread,
                          const model::Frame* frame) {
  if (frame == nullptr || frame != model::user_frame(thread)) {
    return false;
  }
  const auto lines = job.sources.find(frame->file);
  const bool known = lines != job.sources.end() && lines->second.contains(frame->line);
  return known ? !in_waiting_loop(lines->second, frame->line) : frame->file.starts_with('<');
}

}  // namespace

bool waits_for_a_moment(const model::JobModel& job, const model::Thread& thread) {
  const bool timed = thread.waits_on && thread.waits_on->limit && thread.state != 'R';
  const bool sleeps = timed && thread.waits_on->kind == "timer";
  if (!timed || *thread.waits_on->limit >= (sleeps ? kMoment : kPatience)) {
    return false;
  }
  const model::Frame* python = innermost_python(thread);
  if (python == nullptr) {
    return sleeps;
  }
  const model::Frame* user = model::user_frame(thread);
  if (python == user) {
    return sleeps && in_bounded_user_code(job, thread, python);
  }
  // A connection gives up, and so does the user's own q.get(timeout=9); queues and pools of torch
  // poll with a timeout and go on polling.
  const bool by_torch =
      std::any_of(thread.frames.begin(), thread.frames.end(), [user](const model::Frame& frame) {
        return &frame < user && frame.language == model::Language::kPython &&
               frame.file.find("/torch/") != std::string::npos;
      });
  return !by_torch && in_bounded_user_code(job, thread, user);
}

/// "while True: time.sleep(8); with cond: cond.notify_all()": what it sleeps between is what others
/// of its process wait for.
bool gives_signals(const model::JobModel& job, const model::Thread& thread) {
  constexpr std::array<std::string_view, 7> kSignals = {
      ".notify(", ".notify_all(", ".set(", ".put(", ".release(", ".set_result(", ".put_nowait("};
  const model::Frame* user = model::user_frame(thread);
  const auto source = user == nullptr ? job.sources.end() : job.sources.find(user->file);
  if (!thread.waits_on || !thread.waits_on->limit || *thread.waits_on->limit >= kMoment ||
      source == job.sources.end()) {
    return false;
  }
  const auto loop = python_source::loop_around(source->second, user->line);
  for (auto at = source->second.upper_bound(loop ? loop->line : user->line);
       loop && at != source->second.end(); ++at) {
    const std::size_t indent = at->second.find_first_not_of(" \t");
    if (indent != at->second.npos && indent <= static_cast<std::size_t>(loop->indent)) {
      break;
    }
    if (calls_any(at->second, kSignals)) {
      return true;
    }
  }
  return false;
}

/// In a pause of straight work: a thread that goes round in a `while` serves somebody, but not
/// always the one that waits.
bool pauses_once(const model::JobModel& job, const model::Thread& thread) {
  const model::Frame* user = model::user_frame(thread);
  const auto source = user == nullptr ? job.sources.end() : job.sources.find(user->file);
  const auto around = source == job.sources.end()
                          ? std::vector<python_source::Block>{}
                          : python_source::enclosing(source->second, user->line);
  return waits_for_a_moment(job, thread) && thread.waits_on->kind != "timeout" &&
         std::none_of(around.begin(), around.end(), [](const python_source::Block& block) {
           return block.kind == python_source::BlockKind::kWhile;
         });
}

bool another_thread_works(const model::JobModel& job, const model::Process& process,
                          const model::Thread& thread) {
  const model::Observation* then = model::previous(job);
  const model::Process* before = then == nullptr ? nullptr : same_process(*then, process);
  const auto wanted_cpu = [before](const model::Thread& one) {
    return before != nullptr &&
           std::any_of(before->threads.begin(), before->threads.end(), [&](const auto& earlier) {
             return earlier.tid == one.tid && earlier.state == 'R' && one.state == 'R';
           });
  };
  return std::any_of(process.threads.begin(), process.threads.end(), [&](const auto& one) {
    return one.tid != thread.tid && innermost_python(one) != nullptr &&
           (wanted_cpu(one) || pauses_once(job, one) || gives_signals(job, one));
  });
}

pid_t holder_of_lock_file(const model::JobModel& job, const model::Process& process) {
  const std::string pid = std::to_string(process.pid);
  for (const model::Fact* fact : model::facts(job, "lock-file")) {
    const auto waiting = fact->list("waiting_pids");
    if (fact->flag("held").value_or(false) &&
        std::find(waiting.begin(), waiting.end(), pid) != waiting.end()) {
      return static_cast<pid_t>(fact->number("holder_pid").value_or(0));
    }
  }
  return 0;
}

/// Runs the code of a module that it imports.
bool imports(const model::Thread& thread) {
  return model::find_python_frame(thread, "_load_unlocked") != nullptr;
}

bool an_awaited_thread_works(const model::JobModel& job, const model::Process& process,
                             const model::Thread& thread) {
  if (!thread.waits_on) {
    return false;
  }
  // An import lock does not always name its holder: some thread that imports.
  const bool any_import = thread.waits_on->kind == "import-lock" && thread.waits_on->target.empty();
  return std::any_of(process.threads.begin(), process.threads.end(), [&](const auto& one) {
    const bool awaited = any_import
                             ? one.tid != thread.tid && imports(one)
                             : thread.waits_on->target == "thread:" + std::to_string(one.tid);
    return awaited &&
           (waits_for_a_moment(job, one) || (any_import && ran_between_looks(job, process, one)));
  });
}

const model::Process* same_process(const model::Observation& there, const model::Process& process) {
  const auto found = std::find_if(there.processes.begin(), there.processes.end(),
                                  [&process](const model::Process& other) {
                                    return other.pid == process.pid && other.host == process.host &&
                                           other.rank == process.rank && other.role == process.role;
                                  });
  return found == there.processes.end() ? nullptr : &*found;
}

/// Its children fail one after the other and are replaced: that births go on is no work.
bool children_keep_failing(const model::JobModel& job, const model::Process& process) {
  constexpr std::ptrdiff_t kMany = 5;
  const auto facts = model::facts(job, "exit");
  return std::count_if(facts.begin(), facts.end(), [&process](const model::Fact* fact) {
           return fact->number("parent_pid") == process.pid &&
                  fact->number("status").value_or(0) != 0;
         }) >= kMany;
}

/// Every Python thread of it waits without limit in a condition or queue of the process itself, or
/// for another of these threads: nothing that a child does can wake it.
bool only_waits_for_itself(const model::Process& process) {
  constexpr std::array<std::string_view, 2> kFiles = {"/threading.py", "/queue.py"};
  const model::Thread* main = model::main_thread(process);
  return main != nullptr && innermost_python(*main) != nullptr &&
         std::all_of(process.threads.begin(), process.threads.end(), [&](const auto& thread) {
           const model::Frame* python = innermost_python(thread);
           const bool own = (python == nullptr && !thread.frames.empty()) ||
                            (python != nullptr &&
                             std::any_of(kFiles.begin(), kFiles.end(), [python](const auto file) {
                               return python->file.ends_with(file);
                             }));
           const bool limited = thread.waits_on && thread.waits_on->limit;
           return own && (python == nullptr || (thread.state != 'R' && !limited));
         });
}

// NOLINTNEXTLINE(misc-no-recursion): as deep as kDeepest
bool a_child_works(const model::JobModel& job, const model::Process& process, int depth) {
  constexpr int kDeepest = 8;
  const model::Observation* then = model::previous(job);
  const model::Observation* now = model::latest(job);
  if (now == nullptr || depth > kDeepest || (then != nullptr && now->time <= then->time) ||
      only_waits_for_itself(process)) {
    return false;
  }
  const bool births_count = !children_keep_failing(job, process);
  return std::any_of(now->processes.begin(), now->processes.end(), [&](const model::Process& one) {
    if (one.ppid != process.pid || one.pid == process.pid || one.role == model::Role::kRank ||
        one.exit || (!births_count && then != nullptr && same_process(*then, one) == nullptr)) {
      return false;
    }
    if (then == nullptr) {
      const model::Thread* main = model::main_thread(one);
      return (main != nullptr && main->state == 'R') || a_child_works(job, one, depth + 1);
    }
    const model::Process* before = same_process(*then, one);
    const model::Thread* main = model::main_thread(one);
    const model::Thread* main_before = before == nullptr ? nullptr : model::main_thread(*before);
    const bool wants_cpu = main != nullptr && main_before != nullptr && main->state == 'R' &&
                           main_before->state == 'R';  // on a loaded machine it gets little
    const bool busy =
        before == nullptr || wants_cpu || (main != nullptr && waits_for_a_moment(job, *main)) ||
        moved_bytes(*before, one) ||
        (one.cpu_seconds && before->cpu_seconds &&
         *one.cpu_seconds - *before->cpu_seconds >= kBusyShare * (now->time - then->time));
    return busy || a_child_works(job, one, depth + 1);
  });
}

bool ran_between_looks(const model::JobModel& job, const model::Process& process,
                       const model::Thread& thread) {
  const model::Observation* then = model::previous(job);
  const model::Process* before = then == nullptr ? nullptr : same_process(*then, process);
  return before != nullptr && ran_since(*before, thread);
}

bool an_event_came(const model::JobModel& job, const model::Process& process,
                   const model::Thread& thread) {
  const bool by_timer = thread.waits_on && thread.waits_on->limit;
  return !by_timer && ran_between_looks(job, process, thread);
}

bool is_served_from_outside(const model::JobModel& job, const model::Process& process,
                            const model::Thread& thread) {
  constexpr std::array<std::string_view, 4> kChannels = {"socket", "pipe", "fifo", "file"};
  if (!thread.waits_on ||
      std::find(kChannels.begin(), kChannels.end(), thread.waits_on->kind) == kChannels.end()) {
    return false;
  }
  const model::Observation* now = model::latest(job);
  const bool inside =
      now != nullptr &&
      std::any_of(now->processes.begin(), now->processes.end(), [&](const model::Process& other) {
        return other.pid != process.pid &&
               thread.waits_on->target == "pid:" + std::to_string(other.pid);
      });
  return !inside && ran_between_looks(job, process, thread);
}

bool worked_since(const model::JobModel& job, const model::Process* before,
                  const model::Process& process, const model::Thread& thread) {
  const model::Observation* then = model::previous(job);
  const model::Observation* now = model::latest(job);
  if (before == nullptr || then == nullptr || now == nullptr || now->time <= then->time ||
      !before->cpu_seconds || !process.cpu_seconds) {
    return false;
  }
  return ran_since(*before, thread) &&
         (moved_bytes(*before, process) ||
          *process.cpu_seconds - *before->cpu_seconds >= kBusyShare * (now->time - then->time));
}

}  // namespace ddpdoctor::graph

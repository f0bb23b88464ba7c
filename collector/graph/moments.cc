// SPDX-License-Identifier: Apache-2.0
// Waits that end by themselves: short pauses of work, and threads that work for a waiting one.
#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>

#include "base/folders.h"
#include "base/text.h"
#include "collector/graph/polled_state.h"
#include "collector/graph/working.h"
#include "collector/model/observed_objects.h"
#include "collector/model/questions.h"
#include "collector/program/questions/blocks.h"
#include "collector/program/questions/dependence.h"
#include "collector/program/questions/exceptions.h"
#include "collector/program/questions/exits.h"
#include "collector/program/questions/method_calls.h"
#include "collector/program/source_text.h"
#include "collector/program/syntax/source_index.h"

namespace ddpdoctor::graph {
namespace {

constexpr double kMoment = 60;  // seconds; a deliberate stop sleeps longer
// Seconds; a connection attempt that gives up by then counts as short.
constexpr double kPatience = 120;
constexpr long kManyRounds = 600;  // iterations of a loop that takes too long to wait for

/// `range(N)` with a number so large that the loop is practically endless.
bool is_endless_range(std::string_view iterated) {
  constexpr std::string_view kRange = "range(";
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

/// It does, or it may: the class of the object is unknown.
bool may(const program::MethodCall& call, program::MethodDoes effect) {
  return told(call, effect) != program::Told::kNo;
}

/// The comparison around a node tests for one value, so that its loop continues until it is there:
/// `== x`, `in x`. `is not None` and `!= ""` test for the end of the data.
bool waits_for_a_value(program::Node comparison) {
  const auto operands = comparison.children();
  const auto words = comparison.fields(program::Field::kOperators);
  return std::any_of(words.begin(), words.end(), [&operands](program::Node word) {
    const std::string_view text = word.text();
    if (text == "!=") {
      const program::Node right = operands.back();
      const std::string_view plain = right.text();
      const bool empty = right.is(program::NodeKind::kString) &&
                         plain.find_first_not_of("bBrRuU'\"") == plain.npos;
      return !empty && !right.is(program::NodeKind::kNone);
    }
    return text == "==" || text == "in" || text == "not in";
  });
}

/// "while chunk := file.read(size)": ends at the end of the data, unless the test compares the data
/// with an expected value.
bool reads_on(program::Node call) {
  bool named = false;
  for (program::Node at = call; at && !program::is_header(at.kind()) && at.parent() != at;
       at = at.parent()) {
    named = named || at.is(program::NodeKind::kNamed);
    if (at.is(program::NodeKind::kNot) ||
        (at.is(program::NodeKind::kComparison) && waits_for_a_value(at))) {
      return false;
    }
  }
  return named;
}

/// "while (item := queue.get()) is not None": ends when the work ends.
bool takes_work(const model::JobModel& job, const program::SourceText& lines, int loop,
                program::SeenObjects seen) {
  const auto calls = program::calls_at(lines, job.sources, loop, seen);
  return std::any_of(calls.begin(), calls.end(), [](const program::MethodCall& call) {
    return may(call, program::MethodDoes::kTakesWork) ||
           (may(call, program::MethodDoes::kReadsOn) && reads_on(call.call));
  });
}

/// A test in the loop around `line` can leave the loop.
bool has_way_out(const program::SourceText& lines, const program::Block& loop, int line) {
  const auto exits = program::loop_exits(lines, line);
  return std::any_of(exits.begin(), exits.end(),
                     [&loop](const program::Block& exit) { return exit.line > loop.line; });
}

/// "while time.time() < end" with no other exit: it waits for the clock only.
bool is_until_a_time(const program::SourceText& lines, const program::Block& loop, int line) {
  return program::asks_the_clock(lines, loop.line, loop.condition) &&
         !has_way_out(lines, loop, line);
}

/// `while rounds < 40:` with `rounds += 1` in it and no other exit.
bool counts_its_rounds(const program::SourceText& lines, const program::Block& loop, int line) {
  // Conditions with more than a comparison.
  constexpr std::array<std::string_view, 3> kMore = {" and ", " or ", "("};
  const std::string_view condition = loop.condition;
  const std::size_t compared = condition.find_first_of("<>");
  const bool more = base::contains_any(condition, kMore);
  if (compared == std::string_view::npos || more) {
    return false;
  }
  const std::string_view left = base::trim(condition.substr(0, compared));
  std::string_view right = condition.substr(compared);
  right.remove_prefix(std::min(right.find_first_not_of("<>= "), right.size()));
  long rounds = 0;
  const auto [end, error] = std::from_chars(right.data(), right.data() + right.size(), rounds);
  if (error == std::errc::result_out_of_range || (error == std::errc() && rounds > kManyRounds)) {
    return false;
  }
  if (has_way_out(lines, loop, line)) {
    return false;
  }
  for (auto at = lines.upper_bound(loop.line); at != lines.end(); ++at) {
    const std::string_view code = base::trim(at->second);
    if (!code.empty() && static_cast<int>(at->second.find(code)) <= loop.indent) {
      break;
    }
    const std::string_view behind =
        code.starts_with(left) ? base::trim(code.substr(left.size())) : std::string_view();
    if (behind.starts_with("+=") || behind.starts_with("-=")) {
      return true;
    }
  }
  return false;
}

/// "while True: connection = server.accept(); time.sleep(8); …": the program may pause between two
/// pieces of work.
bool took_work_before(const model::JobModel& job, const program::SourceText& lines, int loop,
                      int line, program::SeenObjects seen) {
  const auto calls = program::calls_on(lines, job.sources, loop + 1, line - 1, seen);
  return told(calls, program::MethodDoes::kTakesWork) != program::Told::kNo;
}

/// The innermost loop around a line is a waiting loop: a `while`, unless a test of the rank is in
/// between, which makes the sleep a step of that rank in a common loop.
bool in_waiting_loop(const model::JobModel& job, const model::Thread& thread,
                     const program::SourceText& lines, int line) {
  const auto seen = model::seen_objects(job, thread.tid);
  for (const program::Block& block : program::enclosing(lines, line)) {
    switch (block.kind) {
      case program::BlockKind::kWhile:
        return !takes_work(job, lines, block.line, seen) &&
               !took_work_before(job, lines, block.line, line, seen) &&
               !is_until_a_time(lines, block, line) && !counts_its_rounds(lines, block, line);
      case program::BlockKind::kFor:
        return is_endless_range(block.condition);
      case program::BlockKind::kIf:
      case program::BlockKind::kElif:
        if (program::dependence(block.condition, lines, block.line) == program::Dependence::kRank) {
          return false;
        }
        break;
      case program::BlockKind::kFunction:
        return false;
      default:
        break;
    }
  }
  return false;
}

/// It has failed for so long that the next attempt does not count as work in progress.
bool fails_for_long(const model::JobModel& job, const model::Thread& thread) {
  if (job.seconds_without_progress.value_or(0) < kMoment) {
    return false;
  }
  const auto frames = model::user_frames(thread);
  return std::any_of(frames.begin(), frames.end(), [&job](const model::Frame* frame) {
    const auto lines = job.sources.find(frame->file);
    return lines != job.sources.end() &&
           program::retry_loop(lines->second, frame->line).has_value();
  });
}

/// `frame` is the user's, and no loop around it waits. Code that was typed ("<string>") has no
/// source and is assumed not to wait.
bool in_bounded_user_code(const model::JobModel& job, const model::Thread& thread,
                          const model::Frame* frame) {
  if (frame == nullptr || frame != model::user_frame(thread)) {
    return false;
  }
  const auto lines = job.sources.find(frame->file);
  const bool known = lines != job.sources.end() && lines->second.contains(frame->line);
  return known ? !in_waiting_loop(job, thread, lines->second, frame->line)
               : frame->file.starts_with('<');
}

}  // namespace

bool has_timer_soon(const model::Thread& thread) {
  return thread.waits_on && thread.waits_on->limit && *thread.waits_on->limit < kMoment;
}

bool waits_for_database(const model::Thread& thread) {
  return thread.waits_on && thread.waits_on->kind == "timer" &&
         model::has_native_frame(thread, "sqlite3_step");
}

pid_t holder_of_database(const model::JobModel& job, const model::Process& process) {
  pid_t holder = 0;
  for (const model::Fact* fact : model::facts(job, "file-lock")) {
    const auto pid = static_cast<pid_t>(fact->number("holder_pid").value_or(0));
    if (pid == 0 || pid == process.pid || fact->text("mode") != "write" ||
        fact->number("waiting_pid") || fact->flag("holder_in_job") != true) {
      continue;
    }
    if (holder != 0 && holder != pid) {
      return 0;
    }
    holder = pid;
  }
  return holder;
}

bool waits_for_a_moment(const model::JobModel& job, const model::Thread& thread) {
  if (waits_for_database(thread)) {
    return false;
  }
  const bool timed = thread.waits_on && thread.waits_on->limit && thread.state != 'R';
  const bool sleeps = timed && thread.waits_on->kind == "timer";
  if (!timed || *thread.waits_on->limit >= (sleeps ? kMoment : kPatience) ||
      (sleeps && fails_for_long(job, thread))) {
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
  // A connection attempt gives up, and so does the user's own q.get(timeout=9); queues and pools of
  // torch poll with a timeout and continue.
  const bool by_torch =
      std::any_of(thread.frames.begin(), thread.frames.end(), [user](const model::Frame& frame) {
        return &frame < user && frame.language == model::Language::kPython &&
               base::lies_in(frame.file, "torch");
      });
  return !by_torch && model::find_python_frame(thread, "serve_forever") == nullptr &&
         in_bounded_user_code(job, thread, user);
}

/// "while True: time.sleep(8); with cond: cond.notify_all()": other threads of the process wait for
/// what happens between the sleeps.
bool gives_signals(const model::JobModel& job, const model::Thread& thread) {
  const model::Frame* user = model::user_frame(thread);
  const auto source = user == nullptr ? job.sources.end() : job.sources.find(user->file);
  if (!thread.waits_on || !thread.waits_on->limit || *thread.waits_on->limit >= kMoment ||
      source == job.sources.end()) {
    return false;
  }
  const auto loop = program::loop_around(source->second, user->line);
  if (!loop) {
    return false;
  }
  // A loop that ends reaches the code after it.
  const bool endless = loop->condition == "True" || loop->condition == "1";
  const int deepest = loop->indent + (endless ? 1 : 0);
  int last = loop->line;
  for (auto at = source->second.upper_bound(loop->line); at != source->second.end(); ++at) {
    const std::size_t indent = at->second.find_first_not_of(" \t");
    if (indent != at->second.npos && static_cast<int>(indent) < deepest) {
      break;
    }
    last = at->first;
  }
  const auto calls = program::calls_on(source->second, job.sources, loop->line + 1, last,
                                       model::seen_objects(job, thread.tid));
  return told(calls, program::MethodDoes::kWakes) != program::Told::kNo;
}

/// A pause in straight-line work: a thread in a `while` loop serves other threads, but not always
/// the waiting one.
bool pauses_once(const model::JobModel& job, const model::Thread& thread) {
  const model::Frame* user = model::user_frame(thread);
  const auto source = user == nullptr ? job.sources.end() : job.sources.find(user->file);
  const auto around = source == job.sources.end() ? std::vector<program::Block>{}
                                                  : program::enclosing(source->second, user->line);
  return waits_for_a_moment(job, thread) && thread.waits_on->kind != "timeout" &&
         std::none_of(around.begin(), around.end(), [](const program::Block& block) {
           return block.kind == program::BlockKind::kWhile;
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
    const bool goes_on = one.waits_on && one.waits_on->kind == "timer" && has_timer_soon(one);
    return one.tid != thread.tid && innermost_python(one) != nullptr &&
           (wanted_cpu(one) || pauses_once(job, one) || gives_signals(job, one) ||
            (goes_on && changes_what_is_polled(job, one, thread)));
  });
}

}  // namespace ddpdoctor::graph

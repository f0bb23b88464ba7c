// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/holdup.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/path_ends.h"
#include "base/text.h"
#include "collector/detectors/evidence/native_locks.h"
#include "collector/detectors/evidence/own_wait.h"
#include "collector/detectors/evidence/processes.h"
#include "collector/detectors/evidence/signs.h"
#include "collector/detectors/evidence/teardown_call.h"
#include "collector/detectors/evidence/thread_start.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/graph/working.h"
#include "collector/model/questions.h"
#include "collector/program/questions/expressions.h"

namespace ddpdoctor::detectors {
namespace {

constexpr std::string_view kCancelTimer =
    "Call cancel() on the timer before the program ends, or set daemon = True on it before "
    "start(); one that starts itself again never ends.";
constexpr std::string_view kResetGraph =
    "Delete the CUDA graph, or call its reset(), before destroy_process_group().";
constexpr std::string_view kShutPool =
    "Stop the tasks of the pool (a stop event), then call its shutdown(): its threads cannot be "
    "daemons.";

constexpr std::string_view kReadQueue =
    "Take everything from the queue before join(), or call cancel_join_thread() on it where its "
    "data may be lost.";

constexpr std::string_view kEndInTime =
    "Close the object before the program ends, not in its destructor: daemon threads have ended "
    "when it runs.";

bool waits_for_threads(const model::Thread& main) {
  return python_frame_in(main, "/threading.py", {"_shutdown", "_exitfunc"}) != nullptr ||
         python_frame_in(main, "concurrent/futures/thread.py", {"_python_exit"}) != nullptr ||
         model::has_native_frame(main, "wait_for_thread_shutdown");
}

/// The thread whose end it waits for, if that is known.
const model::Thread* joined_thread(const model::Process& process, const model::Thread& main) {
  const model::WaitsOn* wait = waits_on(main, "thread");
  const pid_t tid = wait == nullptr ? 0 : target_thread(*wait).value_or(0);
  const auto joined = std::find_if(
      process.threads.begin(), process.threads.end(),
      [&](const model::Thread& one) { return tid != 0 && one.tid == tid && &one != &main; });
  return joined == process.threads.end() ? nullptr : &*joined;
}

/// A process exits only after the feeder thread of its multiprocessing.Queue has written
/// everything.
bool waits_for_reader(const model::Thread& main) {
  return python_frame_in(main, "multiprocessing/queues.py", {"_finalize_join"}) != nullptr;
}

/// Its parent reads from the queue, with pauses in between.
bool reader_goes_on(const model::JobModel& job, const model::Process& process) {
  const model::Process* parent = model::process(job, process.ppid);
  const model::Thread* main = parent == nullptr ? nullptr : model::main_thread(*parent);
  // torchrun wakes ten times per second and reads nothing
  return main != nullptr && alive(*parent) && own_user_frame(*main) != nullptr &&
         (main->state == 'R' || graph::waits_for_a_moment(job, *main) ||
          graph::ran_between_looks(job, *parent, *main));
}

/// The interpreter has run the exit functions, and frees what its modules and threads hold.
bool frees_modules(const model::Thread& main) {
  constexpr std::array<std::string_view, 8> kFrees = {
      "_PyModule_Clear",          "PyImport_Cleanup",   "finalize_modules",
      "PyInterpreterState_Clear", "interpreter_clear",  "PyThreadState_Clear",
      "finalize_interp_clear",    "_PyGC_CollectNoFail"};
  const auto frees = [&kFrees](const model::Frame& frame) {
    return frame.language == model::Language::kNative && base::contains_any(frame.function, kFrees);
  };
  return is_exiting(main) && std::any_of(main.frames.begin(), main.frames.end(), frees);
}

bool waits_for_children(const model::Thread& main) {
  return python_frame_in(main, "multiprocessing/util.py", {"_exit_function", "_run_finalizers"}) !=
             nullptr ||
         python_frame_in(main, "concurrent/futures/process.py", {"_python_exit"}) != nullptr ||
         (python_frame_in(main, "concurrent/futures/process.py", {"shutdown"}) != nullptr &&
          own_user_frame(main) == nullptr);  // else the program itself ends the pool
}

/// Python code that the interpreter calls at its end, not the main module: an atexit function.
bool runs_atexit(const model::Thread& main) {
  const model::Frame* user = own_user_frame(main);
  const bool ends = model::has_native_frame(main, "atexit_callfuncs") ||
                    (model::has_native_frame(main, "Py_FinalizeEx") && !frees_modules(main));
  return ends && user != nullptr && user->language == model::Language::kPython;
}

/// "ProcessGroupNCCL" of c10d::ProcessGroupNCCL::~ProcessGroupNCCL(): the innermost destructor that
/// runs because the interpreter frees its modules.
std::string native_destructor(const model::Thread& main) {
  if (!frees_modules(main)) {
    return {};
  }
  for (const model::Frame& frame : main.frames) {
    const std::string name = plain_function(frame.function);
    const std::size_t at = name.rfind("::~");
    if (frame.language == model::Language::kPython) {
      return {};  // Python code deletes the object itself
    }
    if (name.find("gil_scoped") != name.npos) {
      continue;  // of a guard
    }
    if (at != name.npos && !name.starts_with("std::")) {
      return name.substr(at + 3);
    }
  }
  return {};
}

constexpr std::string_view kLimitWait =
    "Call os.waitpid() with os.WNOHANG in a loop that has a limit, then end the child with "
    "SIGKILL. Or end it before the program ends, not in an exit handler.";

/// The line calls os.waitpid(), and the interpreter called its function, as it does with exit
/// handlers: in the whole stack of the main thread there is no module.
bool waits_for_child_at_exit(const model::JobModel& job, const model::Process& process,
                             const model::Thread& main) {
  const model::Frame* inner = model::innermost_python(main);
  const bool in_module =
      std::any_of(main.frames.begin(), main.frames.end(), [](const model::Frame& frame) {
        return frame.language == model::Language::kPython &&
               (frame.function == "<module>" || frame.function.ends_with("_bootstrap") ||
                frame.file.starts_with('<'));
      });
  if (inner == nullptr || in_module || process.python_version.empty() || main.state == 'R') {
    return false;
  }
  const auto line = model::source_line(job, inner->file, inner->line);
  const auto calls = program::calls_in(line.value_or(""));
  return std::any_of(calls.begin(), calls.end(), [](const program::Call& call) {
    return call.callee == "os.waitpid" || call.callee == "os.wait" || call.callee == "os.wait4" ||
           call.callee == "os.waitid" || call.callee == "os.wait3";
  });
}

constexpr std::string_view kEndGroups =
    "Call torch.distributed.destroy_process_group() on every rank before the program ends, also "
    "for "
    "groups of your own: one was still there when Python freed its modules.";

/// What waits for the native destructor, and the call it is in.
Holdup destructor_at_exit(const model::Process& process, const model::Thread& main,
                          const std::string& object) {
  Holdup held{.process = &process,
              .thread = &main,
              .what = fmt::format("the destructor of {}", object),
              .fix = object.starts_with("ProcessGroup") ? kEndGroups : kEndInTime};
  if (const auto call = teardown_call(process); call && call->thread == &main) {
    held.what += fmt::format(" (in {})", function_said(*call->call));
  }
  return held;
}

const model::Frame* outermost_python(const model::Thread& thread) {
  const auto found = std::find_if(
      thread.frames.rbegin(), thread.frames.rend(),
      [](const model::Frame& frame) { return frame.language == model::Language::kPython; });
  return found == thread.frames.rend() ? nullptr : &*found;
}

/// The interpreter called a destructor with no Python code around it: it clears its modules.
const model::Frame* last_destructor(const model::Thread& main) {
  const model::Frame* outermost = outermost_python(main);
  return outermost != nullptr && outermost->function.ends_with("__del__") ? outermost : nullptr;
}

/// No program is around its Python code, although the stacks of the dump are whole: another thread
/// is shown up to its start. The interpreter called it at exit.
const model::Frame* exit_function(const model::Process& process, const model::Thread& main) {
  const model::Frame* outermost = outermost_python(main);
  const bool whole = std::any_of(
      process.threads.begin(), process.threads.end(), [&main](const model::Thread& thread) {
        const model::Frame* start = outermost_python(thread);
        return &thread != &main && start != nullptr && start->function == "_bootstrap" &&
               start->file.ends_with("threading.py");
      });
  const bool program =
      outermost == nullptr || base::path_contains(outermost->file, base::kMultiprocessing) ||
      std::any_of(main.frames.begin(), main.frames.end(), [](const model::Frame& frame) {
        return frame.function == "<module>" || frame.function == "_run_module_as_main";
      });
  return whole && !program && model::was_dumped(process) && main.name == "MainThread" &&
                 main.state != 'R'
             ? outermost
             : nullptr;
}

bool destroys_group(const model::Thread& main) {
  return python_frame_in(main, "torch/distributed/distributed_c10d.py",
                         {"destroy_process_group"}) != nullptr;
}

/// NCCL ends a communicator after the last graph that has captured one of its calls: it polls for
/// the end of that graph.
bool waits_for_graph(const model::JobModel& job, const model::Process& process,
                     const model::Thread& main) {
  if (!model::has_native_frame(main, "ncclCommPollCallbacks")) {
    return false;
  }
  const auto launches = model::facts(job, "graph-launch");
  return std::any_of(launches.begin(), launches.end(), [&process](const model::Fact* fact) {
    return fact->pid == process.pid || (fact->rank && fact->rank == process.rank);
  });
}

std::string_view fix_for(const model::Thread& thread) {
  const std::string_view maker = thread_maker(thread);
  if (maker == "Timer(") {
    return kCancelTimer;
  }
  return maker == "Thread(" ? kEndIt : kShutPool;
}

/// `Thread(target=time.sleep, args=(40,))`: the thread only sleeps.
bool sleeps_once(const model::Thread& thread) {
  const model::Frame* python = model::innermost_python(thread);
  return thread.waits_on && thread.waits_on->kind == "timer" && thread.waits_on->limit &&
         python != nullptr &&
         (python == python_frame_in(thread, "/threading.py", {"run"}) ||
          python == python_frame_in(thread, "concurrent/futures/thread.py", {"run"}));
}

}  // namespace

const model::Thread* user_thread(const model::Process& process, const model::Thread& main) {
  const auto found = std::find_if(process.threads.begin(), process.threads.end(),
                                  [&main](const model::Thread& thread) {
                                    return &thread != &main && own_user_frame(thread) != nullptr;
                                  });
  return found == process.threads.end() ? nullptr : &*found;
}

Holdup held_by(const model::JobModel& job, const model::Process& process,
               const model::Thread& thread) {
  Holdup held{.process = &process,
              .thread = &thread,
              .what = full_thread_name(thread),
              .fix = fix_for(thread)};
  if (own_user_frame(thread) != nullptr) {
    return held;
  }
  const std::string_view maker = thread_maker(thread);
  if (maker != "Thread(") {
    held.what = fmt::format("thread {} ({}, {})", thread.tid, thread.name,
                            maker == "Timer(" ? "a threading.Timer" : "of a ThreadPoolExecutor");
  }
  held.start = only_start(job, maker);
  held.ends_by_itself = maker == "Timer(" ? !starts_itself(job, held.start) : sleeps_once(thread);
  return held;
}

std::optional<Holdup> holdup(const model::JobModel& job, const model::Process& process,
                             const model::Thread& main) {
  if (waits_for_threads(main)) {
    const model::Thread* thread = joined_thread(process, main);
    if (thread == nullptr && teardown_call(process)) {
      return std::nullopt;  // a thread ends a communicator: that call says more
    }
    thread = thread == nullptr ? user_thread(process, main) : thread;
    thread = thread == nullptr ? library_thread(process, main) : thread;
    return thread == nullptr
               ? Holdup{.process = &process, .thread = &main, .what = "a thread that does not end"}
               : held_by(job, process, *thread);
  }
  if (waits_for_reader(main)) {
    const auto feeder = std::find_if(
        process.threads.begin(), process.threads.end(), [](const model::Thread& thread) {
          return python_frame_in(thread, "multiprocessing/queues.py", {"_feed"}) != nullptr;
        });
    Holdup held{.process = &process,
                .thread = feeder == process.threads.end() ? &main : &*feeder,
                .what = "the feeder thread of a multiprocessing queue",
                .fix = kReadQueue};
    held.ends_by_itself = reader_goes_on(job, process);
    return held;
  }
  if (waits_for_children(main)) {
    for (const model::Process* child : children_of(job, process)) {
      const model::Thread* thread = model::main_thread(*child);
      if (alive(*child) && thread != nullptr && own_user_frame(*thread) != nullptr) {
        return Holdup{.process = child,
                      .thread = thread,
                      .what = fmt::format("child process {}", child->pid)};
      }
    }
    return Holdup{.process = &process, .thread = &main, .what = "a child process"};
  }
  if (const std::string object = native_destructor(main); !object.empty()) {
    return destructor_at_exit(process, main, object);
  }
  if (runs_atexit(main)) {
    return Holdup{
        .process = &process, .thread = &main, .what = "a function registered with atexit"};
  }
  if (const model::Frame* destructor = last_destructor(main)) {
    const auto is_library_wait = [](const model::Frame& frame) {
      return frame.language != model::Language::kPython || frame.file.ends_with("/threading.py") ||
             frame.file.ends_with("/queue.py");
    };
    const auto inner = std::find_if_not(main.frames.begin(), main.frames.end(), is_library_wait);
    return Holdup{.process = &process,
                  .thread = &main,
                  .what = fmt::format("{} ({}:{}), in {} ({}:{})", destructor->function,
                                      base::file_name(destructor->file), destructor->line,
                                      inner->function, base::file_name(inner->file), inner->line),
                  .fix = kEndInTime};
  }
  if (const model::Frame* function = exit_function(process, main)) {
    return Holdup{.process = &process,
                  .thread = &main,
                  .what = fmt::format("{} ({}:{}), which Python called at exit", function->function,
                                      base::file_name(function->file), function->line),
                  .fix = kLimitWait};
  }
  if (frees_modules(main) && own_user_frame(main) != nullptr) {
    return Holdup{.process = &process,
                  .thread = &main,
                  .what = "code that runs while Python frees its modules",
                  .fix = kEndInTime};
  }
  if (waits_for_child_at_exit(job, process, main)) {
    return Holdup{.process = &process,
                  .thread = &main,
                  .what = "a child process (os.waitpid)",
                  .fix = kLimitWait};
  }
  if (destroys_group(main)) {
    Holdup held{.process = &process, .thread = &main, .what = "destroy_process_group"};
    if (waits_for_graph(job, process, main)) {
      held.what += ", which waits for a CUDA graph with calls of NCCL";
      held.fix = kResetGraph;
    }
    return held;
  }
  return std::nullopt;
}

}  // namespace ddpdoctor::detectors

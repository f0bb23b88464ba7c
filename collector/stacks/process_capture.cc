// SPDX-License-Identifier: Apache-2.0
#include "collector/stacks/process_capture.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/stacks/target/maps_table.h"
#include "collector/stacks/target/permission.h"
#include "collector/stacks/target/proc_file.h"
#include "collector/stacks/torch/state.h"

namespace ddpdoctor::stacks {

namespace {

std::string sentence(const base::Error& error) {
  return error.hint.empty() ? error.what : error.what + " (" + error.hint + ")";
}

/// An address inside a frame's function: a return address may already belong to the next function.
RemoteAddress inside(const UnwoundFrame& frame) {
  return frame.exact ? frame.pc : frame.pc - 1;
}

/// A lock that is held by other threads; low-level locks (of malloc, of stdio) have an address but
/// no owner field.
enum class Lock { kNone, kLowLevel, kMutex };

Lock lock_taken_in(std::string_view function) {
  constexpr std::array<std::string_view, 3> kMutex{"pthread_mutex_lock", "pthread_mutex_timedlock",
                                                   "pthread_mutex_clocklock"};
  const auto names = [function](std::string_view lock) {
    return function.find(lock) != std::string_view::npos;
  };
  if (std::any_of(kMutex.begin(), kMutex.end(), names)) {
    return Lock::kMutex;
  }
  return names("lll_lock_wait") ? Lock::kLowLevel : Lock::kNone;
}

}  // namespace

bool ProcessCapture::late() const {
  return std::chrono::steady_clock::now() >= deadline_;
}

std::optional<pid_t> ProcessCapture::outer_tid(pid_t inner) const {
  const auto found =
      std::find_if(threads_.begin(), threads_.end(),
                   [inner](const CapturedThread& one) { return one.stack.inner_tid == inner; });
  return found == threads_.end() ? std::nullopt : std::optional(found->stack.tid);
}

/// Used if memory is not readable: names and states only.
void ProcessCapture::list_without_stacks() {
  for (const pid_t tid : tasks_->tids()) {
    CapturedThread thread;
    thread.stack.tid = tid;
    thread.stack.inner_tid = tasks_->inner_tid(tid);
    if (const auto name = tasks_->name(tid)) {
      thread.stack.name = name->name;
      thread.stack.state = name->state;
      thread.stack.wchan = tasks_->wchan(tid);
    }
    thread.stack.problem = thread.stack.state == 'Z' || thread.stack.state == 'X'
                               ? "the thread has ended (zombie)"
                               : "its memory cannot be read";
    threads_.push_back(std::move(thread));
  }
}

bool ProcessCapture::open(ElfCache& files) {
  auto tasks = ProcTasks::open(result_.pid);
  if (!tasks) {
    result_.problems.push_back(tasks.error().what);
    return false;
  }
  tasks_ = std::move(*tasks);
  const auto name = tasks_->name(result_.pid);
  const auto allowed = may_observe(result_.pid);
  auto target = LiveTarget::open(result_.pid, files);
  const bool has_memory = allowed && target && !(*target)->maps().all().empty();
  if (!has_memory && name && (name->state == 'Z' || name->state == 'X')) {
    result_.problems.push_back(fmt::format(
        "process {} has ended: it is a zombie, its parent has not asked for its exit status",
        result_.pid));
  } else if (!allowed) {
    result_.problems.push_back(sentence(allowed.error()));
  } else if (!target) {
    result_.problems.push_back(sentence(target.error()));
  } else if (!has_memory) {
    result_.problems.push_back(fmt::format(
        "process {} has no memory of its own: a kernel thread, or it just ended", result_.pid));
  }
  if (!has_memory) {
    list_without_stacks();
    return false;
  }
  target_ = std::move(*target);
  return true;
}

void ProcessCapture::look_at_new_threads(ThreadCapture& capture) {
  std::vector<pid_t> fresh = tasks_->tids();
  if (options_.glance) {
    std::erase_if(fresh, [this](pid_t tid) { return tid != result_.pid; });
  }
  std::erase_if(fresh, [this](pid_t tid) {
    return std::any_of(threads_.begin(), threads_.end(),
                       [tid](const CapturedThread& one) { return one.stack.tid == tid; });
  });
  std::unordered_map<pid_t, RemoteAddress> states;
  if (python_ && !fresh.empty()) {
    for (const PythonThreadState& state : python_->thread_states()) {
      states.emplace(state.inner_tid, state.address);
    }
  }
  for (const pid_t tid : fresh) {
    if (late()) {
      result_.problems.push_back(
          fmt::format("process {} took longer than {} ms; its other threads were not read",
                      result_.pid, options_.process_deadline.count()));
      return;
    }
    const auto state = states.find(tasks_->inner_tid(tid));
    threads_.push_back(
        capture.capture(tid, state == states.end() ? std::nullopt : std::optional(state->second)));
  }
}

void ProcessCapture::look(ElfCache& files) {
  deadline_ = std::chrono::steady_clock::now() + options_.process_deadline;
  if (!open(files)) {
    return;
  }
  python_ = open_python(*target_, python_problem_);
  const auto holder = python_ ? python_->gil_holder() : std::nullopt;
  ThreadCapture capture(*target_, *tasks_, python_.get(), options_);
  look_at_new_threads(capture);
  look_at_new_threads(capture);  // includes threads that appeared in the meantime
  if (python_ || !python_problem_.empty()) {
    describe_gil(holder);
  }
  if (threads_.empty()) {
    result_.problems.push_back(fmt::format("process {} ended while we looked", result_.pid));
  }
}

void ProcessCapture::describe_gil(std::optional<pid_t> before) {
  PythonRuntime runtime;
  runtime.problem = python_problem_;
  if (python_) {
    target_->memory().forget();
    const auto after = python_->gil_holder();
    runtime.version = python_->version();
    runtime.gil_moving = before != after;
    if (after && !runtime.gil_moving) {
      runtime.gil_holder = outer_tid(*after).value_or(*after);
    }
    for (CapturedThread& thread : threads_) {
      if (thread.has_python_state && !runtime.gil_moving) {
        thread.stack.holds_gil = after == thread.stack.inner_tid;
      }
    }
  }
  result_.python = std::move(runtime);
}

void ProcessCapture::want_names(FunctionNames& names) {
  for (const CapturedThread& thread : threads_) {
    for (const UnwoundFrame& frame : thread.native.frames) {
      if (const auto object = target_->object_at(inside(frame))) {
        names.want(*object->file, inside(frame) - object->bias);
      }
    }
  }
}

std::vector<NativeFrame> ProcessCapture::native_frames(const CapturedThread& thread,
                                                       const FunctionNames& names) {
  std::vector<NativeFrame> frames;
  frames.reserve(thread.native.frames.size());
  for (const UnwoundFrame& one : thread.native.frames) {
    NativeFrame native;
    native.cfa = one.cfa;
    native.frame.address = one.pc;
    native.frame.inferred = one.inferred;
    const Mapping* mapping = target_->maps().find(inside(one));
    if (mapping != nullptr) {
      native.frame.module = base::printable(base::file_name(mapping->path));
    }
    if (const auto object = target_->object_at(inside(one))) {
      const std::uint64_t address = inside(one) - object->bias;
      native.frame.function = names.of(*object->file, address);
      if (!python_ && mapping != nullptr && may_be_user_code(mapping->path)) {
        const auto place = lines_.at(object->file->path(), address);
        native.frame.file = place ? place->file : base::printable(mapping->path);
        native.frame.line = place ? place->line : 0;
      }
    }
    frames.push_back(std::move(native));
  }
  return frames;
}

void ProcessCapture::find_mutex(CapturedThread& thread,
                                const std::vector<NativeFrame>& native) const {
  constexpr std::size_t kInnermost = 4;
  Lock lock = Lock::kNone;
  for (std::size_t i = 0; i < std::min(native.size(), kInnermost); ++i) {
    lock = std::max(lock, lock_taken_in(native[i].frame.function));
  }
  if (lock == Lock::kNone || !thread.mutex_word_owner || !thread.stack.syscall) {
    return;
  }
  thread.stack.mutex_address = thread.stack.syscall->arguments[0];
  if (lock != Lock::kMutex) {
    return;
  }
  // An owner that is not a thread of this process is reported, too: after fork() it is a thread
  // that exists only in the parent.
  constexpr pid_t kMaxPid = 1 << 22;
  const pid_t owner = *thread.mutex_word_owner;
  if (owner > 0 && owner <= kMaxPid) {
    thread.stack.mutex_owner = outer_tid(owner).value_or(owner);
  }
}

void ProcessCapture::assemble(CapturedThread& thread, const FunctionNames& names) {
  ThreadStack& stack = thread.stack;
  const auto native = native_frames(thread, names);
  find_mutex(thread, native);
  stack.has_python = !thread.python.empty();
  stack.complete = options_.native ? thread.native.end == UnwindEnd::kComplete && !native.empty()
                                   : stack.method != CaptureMethod::kNone;
  if (options_.native && stack.method != CaptureMethod::kNone) {
    stack.problem = problem_of(thread.native, *target_);
  }
  std::vector<PythonFrame> python;
  if (stack.has_python) {
    python = python_->decode(thread.python);
    stack.handles = thread.handles != 0 ? python_->decode_exception(thread.handles) : std::nullopt;
  }
  if (!options_.native) {
    for (const PythonFrame& one : python) {
      stack.frames.push_back(one.frame);
    }
  } else if (python.empty()) {
    for (const NativeFrame& one : native) {
      stack.frames.push_back(one.frame);
    }
  } else {
    std::string problem;
    stack.frames = merge(native, thread.stack_pointer, python, python_->version(), problem);
    if (!problem.empty()) {
      stack.problem += (stack.problem.empty() ? "" : "; ") + problem;
    }
  }
  if (stack.has_python && stack.tid == result_.pid) {
    add_awaiting(thread);
  }
  if (options_.visitor && !python.empty()) {
    decoded_.push_back({.tid = stack.tid, .frames = std::move(python)});
  }
}

void ProcessCapture::visit() {
  if (!options_.visitor || decoded_.empty() || !target_ || !python_) {
    return;
  }
  PythonVisit visit{
      .target = *target_, .python = *python_, .stacks = result_, .threads = std::move(decoded_)};
  options_.visitor(visit);
}

/// Adds frames as if the main task had called the event loop: its coroutines are not among the
/// loop's frames.
void ProcessCapture::add_awaiting(CapturedThread& thread) {
  std::vector<Frame> awaiting = python_->awaiting(thread.python);
  auto& frames = thread.stack.frames;
  const auto loop = std::find_if(frames.begin(), frames.end(), runs_event_loop);
  if (awaiting.empty() || loop == frames.end()) {
    return;
  }
  frames.insert(loop + 1, std::make_move_iterator(awaiting.begin()),
                std::make_move_iterator(awaiting.end()));
  if (const RemoteAddress lost = python_->lost_exception(); lost != 0) {
    result_.python->lost = python_->decode_exception(lost);
  }
}

void ProcessCapture::describe_python() {
  if (!python_) {
    return;
  }
  for (const auto& [inner, name] : python_->thread_names()) {
    for (CapturedThread& thread : threads_) {
      if (thread.stack.inner_tid == inner) {
        thread.stack.python_name = name;
      }
    }
  }
  result_.python->environment = python_->environment();
  if (const RemoteAddress printed = python_->printed_exception(); printed != 0) {
    result_.python->printed = python_->decode_exception(printed);
  }
}

ProcessStacks ProcessCapture::finish(const FunctionNames& names, FamilyPages& family) {
  if (target_) {
    target_->memory().forget();
    family.fetch(*target_);
    describe_python();
    if (python_ && options_.torch_state) {
      show_torch_values(*target_, *python_);
    }
  }
  for (CapturedThread& thread : threads_) {
    if (target_) {
      assemble(thread, names);
    }
    result_.longest_stop_ms = std::max(result_.longest_stop_ms, thread.stack.stopped_ms);
    result_.threads.push_back(std::move(thread.stack));
  }
  if (target_) {
    family.keep(*target_);
  }
  if (target_ && options_.torch_state && python_) {
    result_.torch = read_torch_state(*target_, python_.get());
  }
  visit();
  python_.reset();
  if (target_ && options_.maps != nullptr) {
    options_.maps->keep(result_.pid, target_->release_maps());
  }
  target_.reset();
  return std::move(result_);
}

}  // namespace ddpdoctor::stacks

// SPDX-License-Identifier: Apache-2.0
// A dump without native frames ends at a user line: that line calls something that is not Python
// and does not return. The text of the line shows which call it can be.
#include <algorithm>
#include <array>
#include <optional>

#include <fmt/format.h>

#include "base/text.h"
#include "base/word.h"
#include "collector/imports/stack_dumps/dump_processes.h"
#include "collector/model/questions.h"
#include "collector/model/told_by_logs.h"

namespace ddpdoctor::imports {
namespace {

using std::string_view;

bool contains_any(string_view text, std::initializer_list<string_view> parts) {
  return base::contains_any(text, parts);
}

/// The text without a trailing comment; a `#` in a string also ends it, so that less is known.
string_view code_of(string_view line) {
  return base::trim(line.substr(0, line.find('#')));
}

/// The first argument of a call of the function `call` (not of a method with that name): "path" of
/// "open(path, 'r')". Nothing if it is not called.
std::optional<string_view> argument_of(string_view code, string_view call) {
  for (std::size_t at = code.find(call); at != string_view::npos; at = code.find(call, at + 1)) {
    const bool starts = at == 0 || (!base::is_word(code[at - 1]) && code[at - 1] != '.');
    const string_view rest = code.substr(at + call.size());
    if (starts && rest.starts_with('(')) {
      return base::trim(rest.substr(1, rest.find_first_of(",)(", 1) - 1));
    }
  }
  return std::nullopt;
}

/// The expression before `.method(`: "self.store" of "plan = self.store.get(key)"; empty if the
/// method is not called.
string_view receiver_of(string_view code, string_view method) {
  const std::size_t dot = code.find(method);
  if (dot == string_view::npos) {
    return {};
  }
  std::size_t start = dot;
  while (start > 0 && (base::is_word(code[start - 1]) || code[start - 1] == '.')) {
    --start;
  }
  return code.substr(start, dot - start);
}

string_view last_name(string_view expression) {
  const std::size_t dot = expression.rfind('.');
  return dot == string_view::npos ? expression : expression.substr(dot + 1);
}

bool is_lock(string_view expression) {
  return contains_any(last_name(expression), {"lock", "Lock", "mutex"});
}

model::WaitsOn waits(string_view kind, string_view detail) {
  return {.kind = std::string(kind),
          .target = {},
          .detail = detail.empty() ? std::string() : fmt::format("`{}`", detail)};
}

/// `with a_lock:`, and `a_lock.acquire()`.
std::optional<model::WaitsOn> wait_for_lock(string_view code) {
  constexpr string_view kWith = "with ";
  if (code.starts_with(kWith) && code.ends_with(':')) {
    const string_view entered =
        base::trim(code.substr(kWith.size(), code.size() - kWith.size() - 1));
    if (is_lock(entered) && entered.find_first_of("(, ") == string_view::npos) {
      return waits("mutex", entered);
    }
  }
  const string_view acquired = receiver_of(code, ".acquire(");
  return is_lock(acquired) ? std::optional(waits("mutex", acquired)) : std::nullopt;
}

/// A key of a store; the detector itself reads the key from the line.
std::optional<model::WaitsOn> wait_for_key(string_view code) {
  for (const string_view method : {".get(", ".wait("}) {
    const string_view store = receiver_of(code, method);
    if (contains_any(last_name(store), {"store", "Store"})) {
      return model::WaitsOn{.kind = "store-key", .target = {}, .detail = {}};
    }
  }
  return std::nullopt;
}

/// The file or socket is known only as an expression.
std::optional<model::WaitsOn> wait_for_io(string_view code) {
  for (const string_view method : {".recv(", ".recv_into(", ".accept(", ".sendall("}) {
    if (const string_view socket = receiver_of(code, method); !socket.empty()) {
      return waits("socket", socket);
    }
  }
  for (const string_view function : {"open", "os.open", "os.read", "os.write", "os.fsync"}) {
    if (const auto file = argument_of(code, function)) {
      return waits("file", *file);
    }
  }
  for (const string_view method : {".read(", ".readline(", ".readlines(", ".readinto("}) {
    if (const string_view file = receiver_of(code, method); !file.empty()) {
      return waits("file", file);
    }
  }
  return std::nullopt;
}

std::optional<model::WaitsOn> wait_of_line(string_view line) {
  const string_view code = code_of(line);
  if (argument_of(code, "input")) {
    return waits("input", {});
  }
  if (auto lock = wait_for_lock(code)) {
    return lock;
  }
  if (auto key = wait_for_key(code)) {
    return key;
  }
  return wait_for_io(code);
}

/// Functions of the standard library that block in a read or connect of a socket.
struct SocketCall {
  string_view file;
  string_view function;
};
constexpr std::array<SocketCall, 6> kSocketCalls = {{
    {"ssl.py", "read"},
    {"ssl.py", "recv"},
    {"ssl.py", "recv_into"},
    {"ssl.py", "do_handshake"},
    {"socket.py", "readinto"},
    {"socket.py", "create_connection"},
}};

/// The thread's innermost Python function is one of these: `SSLSocket.read`.
bool waits_for_socket(const model::Thread& thread) {
  const model::Frame* python = model::innermost_python(thread);
  if (python == nullptr || model::is_user_file(python->file)) {
    return false;
  }
  const string_view file = base::file_name(python->file);
  const string_view function = last_name(python->function);
  return std::any_of(kSocketCalls.begin(), kSocketCalls.end(), [&](const SocketCall& one) {
    return file == one.file && function == one.function;
  });
}

/// The innermost frame is a user's Python frame that is not running, so its line waits in a call
/// that is not Python.
std::optional<model::WaitsOn> wait_of(const model::JobModel& job, const model::Thread& thread) {
  if (thread.state == 'R' || thread.frames.empty()) {
    return std::nullopt;
  }
  const model::Frame& frame = thread.frames.front();
  if (frame.language != model::Language::kPython) {
    return std::nullopt;
  }
  // A logging handler writes to its stream.
  if (frame.file.ends_with("logging/__init__.py") &&
      (frame.function.ends_with("emit") || frame.function.ends_with("flush"))) {
    return waits("file", "handler.stream");
  }
  if (!model::is_user_file(frame.file)) {
    return std::nullopt;
  }
  const auto line = model::source_line(job, frame.file, frame.line);
  return line ? wait_of_line(*line) : std::nullopt;
}

bool is_in(const model::Frame& frame, string_view file,
           std::initializer_list<string_view> functions) {
  const bool there = file.find('/') == file.npos ? base::file_name(frame.file) == file
                                                 : frame.file.ends_with(file);
  return frame.language == model::Language::kPython && there &&
         std::find(functions.begin(), functions.end(), last_name(frame.function)) !=
             functions.end();
}

constexpr string_view kPool = "concurrent/futures/thread.py";

/// It is in Thread.join, called by a ThreadPoolExecutor that ends.
bool joins_pool(const model::Thread& thread) {
  const auto caller =
      std::find_if_not(thread.frames.begin(), thread.frames.end(), [](const model::Frame& frame) {
        return frame.language != model::Language::kPython ||
               is_in(frame, "threading.py", {"join", "_wait_for_tstate_lock"});
      });
  return thread.state != 'R' && caller != thread.frames.begin() && caller != thread.frames.end() &&
         is_in(*caller, kPool, {"shutdown", "_python_exit"});
}

/// "ThreadPoolExecutor-0_8": the pool numbers its threads behind a prefix.
bool is_numbered(string_view name) {
  const std::size_t digits = name.find_last_not_of("0123456789");
  return digits != name.npos && digits > 0 && digits + 1 < name.size() && name[digits] == '_';
}

/// A thread of a ThreadPoolExecutor that runs a task. If its outer frames were not copied, its name
/// shows the pool.
bool runs_task_of_pool(const model::Thread& thread) {
  const auto in = [&thread](string_view file, std::initializer_list<string_view> functions) {
    return std::any_of(thread.frames.begin(), thread.frames.end(),
                       [&](const model::Frame& frame) { return is_in(frame, file, functions); });
  };
  if (in(kPool, {"_worker"})) {
    return in(kPool, {"run"}) || model::user_frame(thread) != nullptr;
  }
  return is_numbered(thread.name) && !in("threading.py", {"_bootstrap", "run"}) &&
         model::user_frame(thread) != nullptr;
}

/// The end of a pool's thread that still runs a task.
std::optional<model::WaitsOn> wait_for_pool(const model::Process& process,
                                            const model::Thread& thread) {
  const auto task = joins_pool(thread) ? std::find_if(process.threads.begin(),
                                                      process.threads.end(), runs_task_of_pool)
                                       : process.threads.end();
  if (task == process.threads.end() || &*task == &thread) {
    return std::nullopt;
  }
  return model::WaitsOn{.kind = "thread",
                        .target = fmt::format("thread:{}", task->tid),
                        .detail = "joins the threads of a ThreadPoolExecutor"};
}

/// Python raises KeyboardInterrupt after the call at this line has returned, unless the call waits
/// in a way that a signal interrupts: the standard library's waits, and those that the line shows.
/// A thread at any other line ran. Waits for ranks keep their meaning.
bool ran_when_interrupted(const model::Thread& thread) {
  if (thread.waits_on || thread.frames.empty() || !thread.capture.ends_with(model::kOfInterrupt)) {
    return false;
  }
  const std::string& file = thread.frames.front().file;
  const bool of_torch = file.find("torch/distributed/") != std::string::npos ||
                        file.find("torch/autograd/") != std::string::npos;
  const bool installed = file.find("-packages/") != std::string::npos;
  return !of_torch && (installed || model::is_user_file(file));
}

}  // namespace

void infer_waits(model::JobModel& job) {
  for (model::Observation& observation : job.observations) {
    for (model::Process& process : observation.processes) {
      for (model::Thread& thread : process.threads) {
        if (!model::was_dumped(process) || thread.waits_on) {
          continue;
        }
        // py-spy calls a thread active unless the kernel says otherwise; where it does not know the
        // kernel's id of the thread, unless it knows its innermost function as a wait.
        const bool runs = thread.state == 'R' && thread.tid > 0;
        if (&thread == process.threads.data() && !runs && waits_for_socket(thread)) {
          thread.waits_on = waits("socket", {});
          thread.state = thread.state == 'R' ? 'S' : thread.state;
        } else {
          thread.waits_on = wait_for_pool(process, thread);
          thread.waits_on = thread.waits_on ? thread.waits_on : wait_of(job, thread);
          thread.state = ran_when_interrupted(thread) ? 'R' : thread.state;
        }
      }
    }
  }
}

}  // namespace ddpdoctor::imports

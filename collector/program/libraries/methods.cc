// SPDX-License-Identifier: Apache-2.0
// From the documentation of Python 3.14 and torch 2.13.
#include "collector/program/libraries/methods.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "collector/program/libraries/libraries.h"

namespace ddpdoctor::program {
namespace {

constexpr auto kTakes = MethodDoes::kTakesWork;
constexpr auto kReads = MethodDoes::kReadsOn;
constexpr auto kBoth = MethodDoes::kTakesAndReads;
constexpr auto kWakes = MethodDoes::kWakes;
constexpr auto kKey = MethodDoes::kSetsKeyAndWakes;
constexpr auto kFile = MethodDoes::kAsksForFile;
constexpr auto kNothing = MethodDoes::kNothing;

// class (or module of a function), method, what it does, the waits that it ends
constexpr auto kMethods = std::to_array<MethodRow>({
    {"Queue", "get", kTakes, "put"},
    {"Queue", "get_nowait", kTakes, "put"},
    {"Queue", "put", kWakes, "get"},
    {"Queue", "put_nowait", kWakes, "get"},
    {"Queue", "task_done", kWakes, "join"},
    {"deque", "popleft", kTakes},
    {"deque", "pop", kTakes},
    {"list", "pop", kTakes},
    {"set", "pop", kTakes},
    {"dict", "popitem", kTakes},
    {"socket", "accept", kTakes},
    {"socket", "recv", kBoth},
    {"socket", "recv_into", kBoth},
    {"socket", "recvfrom", kBoth},
    {"Connection", "recv", kBoth},
    {"Connection", "recv_bytes", kBoth},
    {"Connection", "send", kNothing, "recv"},
    {"Connection", "send_bytes", kNothing, "recv_bytes"},
    {"Listener", "accept", kTakes},
    {"file", "read", kReads},
    {"file", "read1", kReads},
    {"file", "readinto", kReads},
    {"file", "readline", kReads},
    {"file", "readlines", kReads},
    {"Cursor", "fetchone", kReads},
    {"Cursor", "fetchmany", kReads},
    {"Event", "set", kWakes, "wait"},
    {"Condition", "notify", kWakes, "wait wait_for"},
    {"Condition", "notify_all", kWakes, "wait wait_for"},
    {"Condition", "release", kWakes, "acquire"},
    {"Lock", "release", kWakes, "acquire"},
    {"Semaphore", "release", kWakes, "acquire"},
    {"Future", "set_result", kWakes, "result exception wait"},
    {"Future", "set_exception", kWakes, "result exception wait"},
    {"Store", "set", kKey, "get wait"},
    {"Store", "add", kKey, "get wait"},
    {"Store", "compare_set", kKey, "get wait"},
    {"Store", "delete_key", MethodDoes::kDropsKey},
    {"Path", "exists", kFile},
    {"Path", "is_file", kFile},
    {"Path", "is_dir", kFile},
    {"Path", "open", kFile},
    {"Path", "mkdir", kFile},
    {"Path", "touch", kFile},
    {"Path", "stat", kFile},
    {"Path", "lstat", kFile},
    {"Path", "symlink_to", kFile},
    {"Path", "hardlink_to", kFile},
    // functions
    {"builtins", "next", kTakes},
    {"builtins", "open", kFile},
    {"io", "open", kFile},
    {"heapq", "heappop", kTakes},
    {"os.path", "exists", kFile},
    {"os.path", "lexists", kFile},
    {"os.path", "isfile", kFile},
    {"os.path", "isdir", kFile},
    {"os", "open", kFile},
    {"os", "mkdir", kFile},
    {"os", "makedirs", kFile},
    {"os", "link", kFile},
    {"os", "symlink", kFile},
    {"os", "stat", kFile},
    {"os", "lstat", kFile},
    {"os", "access", kFile},
});

// module, class or function, class of what it returns, items of a tuple
constexpr auto kClasses = std::to_array<ClassRow>({
    {"queue", "Queue", "Queue"},
    {"queue", "LifoQueue", "Queue"},
    {"queue", "PriorityQueue", "Queue"},
    {"queue", "SimpleQueue", "Queue"},
    {"asyncio", "Queue", "Queue"},
    {"asyncio", "Event", "Event"},
    {"asyncio", "Condition", "Condition"},
    {"asyncio", "Semaphore", "Semaphore"},
    {"asyncio", "Lock", "Lock"},
    {"threading", "Event", "Event"},
    {"threading", "Condition", "Condition"},
    {"threading", "Semaphore", "Semaphore"},
    {"threading", "BoundedSemaphore", "Semaphore"},
    {"threading", "Lock", "Lock"},
    {"threading", "RLock", "Lock"},
    {"threading", "Thread", "Thread"},
    {"threading", "Timer", "Thread"},
    {"multiprocessing", "Queue", "Queue"},
    {"multiprocessing", "JoinableQueue", "Queue"},
    {"multiprocessing", "SimpleQueue", "Queue"},
    {"multiprocessing", "Event", "Event"},
    {"multiprocessing", "Condition", "Condition"},
    {"multiprocessing", "Semaphore", "Semaphore"},
    {"multiprocessing", "BoundedSemaphore", "Semaphore"},
    {"multiprocessing", "Lock", "Lock"},
    {"multiprocessing", "RLock", "Lock"},
    {"multiprocessing", "Process", "Process"},
    {"multiprocessing", "dict", "dict"},
    {"multiprocessing", "list", "list"},
    {"multiprocessing", "Pipe", "Connection", 2},
    {"multiprocessing.connection", "Connection", "Connection"},
    {"multiprocessing.connection", "Client", "Connection"},
    {"multiprocessing.connection", "Listener", "Listener"},
    {"multiprocessing.connection", "accept", "Connection"},
    {"torch.multiprocessing", "Queue", "Queue"},
    {"torch.multiprocessing", "JoinableQueue", "Queue"},
    {"torch.multiprocessing", "SimpleQueue", "Queue"},
    {"torch.multiprocessing", "Event", "Event"},
    {"torch.multiprocessing", "Condition", "Condition"},
    {"torch.multiprocessing", "Semaphore", "Semaphore"},
    {"torch.multiprocessing", "Lock", "Lock"},
    {"torch.multiprocessing", "RLock", "Lock"},
    {"torch.multiprocessing", "Process", "Process"},
    {"torch.multiprocessing", "Pipe", "Connection", 2},
    {"concurrent.futures", "Future", "Future"},
    {"concurrent.futures", "submit", "Future"},
    {"concurrent.futures", "ThreadPoolExecutor", "Executor"},
    {"concurrent.futures", "ProcessPoolExecutor", "Executor"},
    {"socket", "socket", "socket"},
    {"socket", "create_connection", "socket"},
    {"socket", "create_server", "socket"},
    {"socket", "accept", "socket", 1},
    {"socket", "socketpair", "socket", 2},
    {"socket", "makefile", "file"},
    {"torch.distributed", "Store", "Store"},
    {"torch.distributed", "TCPStore", "Store"},
    {"torch.distributed", "FileStore", "Store"},
    {"torch.distributed", "HashStore", "Store"},
    {"torch.distributed", "PrefixStore", "Store"},
    {"torch.distributed", "_get_default_store", "Store"},
    {"collections", "deque", "deque"},
    {"collections", "OrderedDict", "dict"},
    {"collections", "defaultdict", "dict"},
    {"collections", "Counter", "dict"},
    {"contextvars", "ContextVar", "ContextVar"},
    {"os", "environ", "dict"},
    {"pathlib", "Path", "Path"},
    {"pathlib", "open", "file"},
    {"builtins", "open", "file"},
    {"io", "open", "file"},
    {"gzip", "open", "file"},
    {"sqlite3", "cursor", "Cursor"},
    {"sqlite3", "execute", "Cursor"},
    // as memory shows them
    {"_queue", "SimpleQueue", "Queue"},
    {"_thread", "lock", "Lock"},
    {"_thread", "RLock", "Lock"},
    {"_io", "TextIOWrapper", "file"},
    {"_io", "BufferedReader", "file"},
    {"_io", "BufferedRandom", "file"},
    {"_io", "FileIO", "file"},
    {"pathlib", "PosixPath", "Path"},
    {"sqlite3", "Cursor", "Cursor"},
    {"torch._C._distributed_c10d", "TCPStore", "Store"},
    {"torch._C._distributed_c10d", "FileStore", "Store"},
    {"torch._C._distributed_c10d", "HashStore", "Store"},
    {"torch._C._distributed_c10d", "PrefixStore", "Store"},
    {"typing", "Dict", "dict"},
    {"typing", "List", "list"},
    {"typing", "Set", "set"},
    {"builtins", "dict", "dict"},
    {"builtins", "list", "list"},
    {"builtins", "set", "set"},
    {"builtins", "frozenset", "set"},
    {"builtins", "tuple", "tuple"},
    {"builtins", "str", "str"},
    {"builtins", "bytes", "str"},
    {"builtins", "bytearray", "str"},
    {"builtins", "int", "int"},
    {"builtins", "float", "int"},
});

}  // namespace

bool does(const MethodRow& row, MethodDoes effect) {
  return (static_cast<unsigned>(row.does) & static_cast<unsigned>(effect)) != 0;
}

bool ends_wait(const MethodRow& row, std::string_view waiting) {
  const auto ended = base::split(row.ends, ' ');
  return !waiting.empty() && std::find(ended.begin(), ended.end(), waiting) != ended.end();
}

std::span<const MethodRow> methods() {
  return kMethods;
}

bool is_listed(std::string_view method) {
  return std::any_of(kMethods.begin(), kMethods.end(),
                     [method](const MethodRow& row) { return row.name == method; });
}

const MethodRow* method_of_class(std::string_view owner, std::string_view method) {
  const auto found = std::find_if(kMethods.begin(), kMethods.end(), [&](const MethodRow& row) {
    return row.owner == owner && row.name == method;
  });
  return found == kMethods.end() ? nullptr : &*found;
}

const MethodRow* effect_of_function(std::string_view qualified) {
  const std::size_t dot = qualified.rfind('.');
  return dot == qualified.npos
             ? nullptr
             : method_of_class(qualified.substr(0, dot), qualified.substr(dot + 1));
}

const ClassRow* class_made_by(std::string_view qualified) {
  const std::string_view last = qualified.substr(qualified.rfind('.') + 1);
  const auto found = std::find_if(kClasses.begin(), kClasses.end(), [&](const ClassRow& row) {
    return row.name == last && lies_in(qualified, row.module) && qualified != row.module;
  });
  return found == kClasses.end() ? nullptr : &*found;
}

}  // namespace ddpdoctor::program

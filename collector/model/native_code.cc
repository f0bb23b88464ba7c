// SPDX-License-Identifier: Apache-2.0
// The tables. Sources: glibc 2.17 to 2.41, CPython 2.7 to 3.14, libgomp, libiomp5, OpenBLAS, MKL,
// oneTBB, numba's workqueue.c, pthreadpool, Eigen, rayon, tokio, OpenCV, numexpr and Arrow.
#include "collector/model/native_code.h"

#include <algorithm>
#include <array>

#include "base/text.h"

namespace ddpdoctor::model {

using std::string_view;

bool is_libc_code(const Frame& frame) {
  constexpr std::array<string_view, 8> kModules = {"libc.so", "libc-2",    "libpthread", "ld-linux",
                                                   "ld-2",    "libc.musl", "ld-musl",    "[vdso]"};
  constexpr std::array<string_view, 3> kFolders = {"sysdeps/", "nptl/", "/csu/"};
  // gdb names some sources of glibc without a folder.
  constexpr std::array<string_view, 8> kFiles = {"lowlevellock.",  "pthread_",   "futex-internal.",
                                                 "sem_wait",       "clone.S",    "libc-start.",
                                                 "cancellation.c", "nanosleep.c"};
  return frame.language == Language::kNative &&
         (base::begins_with_any(frame.module, kModules) ||
          base::contains_any(frame.file, kFolders) || base::begins_with_any(frame.file, kFiles) ||
          frame.file.ends_with("stdlib/cxa_atexit.c"));
}

bool is_interpreter_code(const Frame& frame) {
  constexpr std::array<string_view, 14> kBeginnings = {"Py",
                                                       "_Py",
                                                       "cfunction_",
                                                       "method_vectorcall",
                                                       "t_bootstrap",
                                                       "thread_run",
                                                       "subtype_",
                                                       "builtin_",
                                                       "object_",
                                                       "slot_tp",
                                                       "call_function",
                                                       "pythread_wrapper",
                                                       "_enter_buffered_busy",
                                                       "drop_gil"};
  return frame.language == Language::kPython ||
         (base::begins_with_any(frame.function, kBeginnings) &&
          frame.function.find("::") == std::string::npos);
}

bool takes_gil(string_view function) {
  constexpr std::array<string_view, 7> kTakers = {
      "take_gil",           "PyEval_RestoreThread",  "PyGILState_Ensure",   "PyEval_AcquireThread",
      "PyEval_AcquireLock", "_PyThreadState_Attach", "PyThreadState_Ensure"};
  return base::contains_any(function, kTakers);
}

bool enters_python(string_view function) {
  constexpr std::array<string_view, 3> kEnters = {"PyGILState_Ensure", "gil_scoped_acquire",
                                                  "PyThreadState_Ensure"};
  return base::contains_any(function, kEnters);
}

bool releases_gil(string_view function) {
  constexpr std::array<string_view, 9> kReleases = {
      "gil_scoped_release", "AutoNoGIL",      "PyEval_SaveThread",
      "at::_ops::",         "at::redispatch", "Engine::execute",
      "_ctypes_callproc",   "ffi_call",       "PyMutex_Lock"};
  return base::contains_any(function, kReleases);
}

bool blocks_without_gil(const Frame& frame) {
  constexpr std::array<string_view, 12> kFunctions = {
      "time_sleep",    "pysleep",   "select_epoll_poll", "select_poll_poll",
      "select_select", "sock_recv", "sock_accept",       "sock_connect",
      "os_waitpid",    "os_wait",   "os_read",           "_multiprocessing_SemLock"};
  return (frame.module.empty() || base::contains(frame.module, "python")) &&
         base::begins_with_any(frame.function, kFunctions);
}

bool sleeps_in_libc(const Frame& frame) {
  constexpr std::array<string_view, 15> kWaits = {
      "poll",  "select", "epoll_wait", "accept", "recv",     "connect", "_read", "futex",
      "cond_", "sem_",   "wait4",      "sleep",  "lll_lock", "flock",   "join"};
  return is_libc_code(frame) &&
         (frame.function == "read" || base::contains_any(frame.function, kWaits));
}

bool takes_mutex(string_view function) {
  constexpr std::array<string_view, 25> kLocks = {"lll_lock_wait",
                                                  "pthread_mutex_lock",
                                                  "pthread_mutex_timedlock",
                                                  "pthread_mutex_clock",
                                                  "pthread_rwlock_rdlock",
                                                  "pthread_rwlock_wrlock",
                                                  "pthread_spin_lock",
                                                  "__psynch_mutexwait",
                                                  "mutex_firstfit_lock",
                                                  "gthread_mutex_lock",
                                                  "gthread_recursive_mutex_lock",
                                                  "std::mutex::lock",
                                                  "std::__1::mutex::lock",
                                                  "mutex_lock_slow",
                                                  "absl::Mutex::Lock",
                                                  "absl::Mutex::LockSlow",
                                                  "gpr_mu_lock",
                                                  "nsync_mu_lock",
                                                  "recursive_mutex::lock",
                                                  "RawMutex::lock_slow",
                                                  "RawRwLock::lock_",
                                                  "Mutex::lock_contended",
                                                  "RwLock::read_contended",
                                                  "RwLock::write_contended",
                                                  "uv_mutex_lock"};
  return base::contains_any(function, kLocks);
}

bool has_lock_of_libc(string_view function) {
  constexpr std::array<string_view, 6> kFunctions = {"__internal_atexit",   "__new_exitfn",
                                                     "__cxa_atexit",        "__register_atfork",
                                                     "__cxa_at_quick_exit", "__unregister_atfork"};
  return base::contains_any(function, kFunctions);
}

bool is_call_of_buffered_file(string_view function) {
  return function.starts_with("<built-in method ") &&
         function.find(" of _io.Buffered") != string_view::npos;
}

bool surrounds_wait(string_view function) {
  constexpr std::array<string_view, 39> kAround = {
      "futex",
      "_L_lock_",  // of glibc before 2.18
      "syscall",
      "std::lock_guard",
      "std::unique_lock",
      "std::scoped_lock",
      "std::shared_lock",
      "std::__mutex",
      "std::shared_timed_mutex",
      "std::shared_mutex",
      "mutex_lock",
      "mutex::lock",
      "MutexLock",
      "sem_wait",
      "std::lock",
      "absl::Mutex",
      "absl::CondVar",
      "absl::synchronization_internal",
      "AbslInternalPerThreadSem",
      "gpr_cv_wait",
      "pthread_cond",  // Python's locks, and a condition that takes its mutex again
      "condition_variable",
      "std::__future_base::_State_baseV2::wait",
      "std::__basic_future",
      "std::future",
      "std::__atomic_futex",
      "std::__1::__assoc_sub_state",
      "std::thread::join",
      "__gthread",
      "pthread_join",
      "pthread_barrier",
      "pthread_clockjoin",
      "parking_lot",
      "std::sys::",
      "std::sync::",
      "std::thread::park",
      "uv_cond_wait",
      "uv_sem_wait",
      "nsync_"};
  return function.empty() || base::contains_any(function, kAround);
}

bool awaits_signal_of_thread(string_view function) {
  constexpr std::array<string_view, 12> kWaits = {
      "pthread_cond_wait", "__psynch_cvwait",     "pthread_barrier_wait",
      "pthread_join",      "pthread_clockjoin",   "futex_wait_cancelable",
      "std::future",       "absl::CondVar::Wait", "gpr_cv_wait",
      "std::thread::park", "futex_wait",          "condition_variable::wait"};
  return base::contains_any(function, kWaits);
}

bool has_timeout(string_view function) {
  constexpr std::array<string_view, 11> kTimed = {"pthread_cond_timedwait",
                                                  "pthread_cond_clockwait",
                                                  "sem_timedwait",
                                                  "sem_clockwait",
                                                  "mutex_timedlock",
                                                  "mutex_clocklock",
                                                  "timedrdlock",
                                                  "timedwrlock",
                                                  "wait_for",
                                                  "wait_until",
                                                  "park_timeout"};
  return base::contains_any(function, kTimed) ||
         function.find("WithTimeout") != string_view::npos ||
         function.find("timedjoin") != string_view::npos;
}

bool says_why(const Frame& frame) {
  return !frame.function.empty() && !is_libc_code(frame) && !surrounds_wait(frame.function) &&
         !takes_mutex(frame.function);
}

const Frame* telling_frame(const Thread& thread) {
  for (const Frame& frame : thread.frames) {
    if (frame.language != Language::kNative) {
      return nullptr;
    }
    if (says_why(frame)) {
      return &frame;
    }
  }
  return nullptr;
}

bool is_start_of_thread(const Frame& frame) {
  constexpr std::array<string_view, 9> kStarts = {"_start",       "start",        "main",
                                                  "start_thread", "thread_start", "_pthread_start",
                                                  "thread_main",  "clone",        "clone3"};
  constexpr std::array<string_view, 6> kBeginnings = {"__libc_start", "__clone",
                                                      "__libc_main",  "std::execute_native_thread",
                                                      "__GI___clone", "execute_native_thread"};
  const string_view name = string_view(frame.function).substr(0, frame.function.find('('));
  return std::find(kStarts.begin(), kStarts.end(), name) != kStarts.end() ||
         base::begins_with_any(name, kBeginnings);
}

namespace {

bool is_of_interpreter_file(const Frame& frame) {
  return frame.module.starts_with("python") || frame.module.starts_with("libpython");
}

enum class In { kModule, kFunction, kFile };

/// A part of the name of a library, a function or a source file.
struct PoolRow {
  In in = In::kFunction;
  string_view part;
  NativePool pool;
};

constexpr PoolRow kPools[] = {
    {In::kModule, "libgomp", {"OpenMP"}},
    {In::kFile, "/libgomp/", {"OpenMP"}},  // its inlined functions, with debug information
    {In::kModule, "libiomp", {"OpenMP"}},
    {In::kModule, "libomp", {"OpenMP"}},
    {In::kFunction, "GOMP_parallel", {"OpenMP"}},
    {In::kFunction, "gomp_team_", {"OpenMP"}},
    {In::kFunction, "gomp_barrier", {"OpenMP"}},
    {In::kFunction, "gomp_simple_barrier", {"OpenMP"}},
    {In::kFunction, "gomp_thread_start", {"OpenMP"}},
    {In::kFunction, "gomp_init_team", {"OpenMP"}},
    {In::kFunction, "__kmp_", {"OpenMP"}},
    {In::kFunction, "exec_blas_async", {"OpenBLAS"}},
    {In::kFunction, "blas_thread_", {"OpenBLAS"}},
    {In::kModule, "libmkl", {"MKL"}},
    {In::kModule, "libtbb", {"TBB"}},
    {In::kFunction, "tbb::detail", {"TBB"}},
    {In::kFile, "ufunc/workqueue.c", {"numba's workqueue"}},
    {In::kModule, "workqueue.c", {"numba's workqueue"}},  // workqueue.cpython-39-….so
    {In::kFile, "ufunc/omppool.cpp", {"OpenMP"}},
    {In::kModule, "omppool.c", {"OpenMP"}},
    {In::kModule, "tbbpool.c", {"TBB"}},
    {In::kFunction, "pthreadpool_parallelize", {"pthreadpool"}},
    {In::kFunction, "pthreadpool_thread", {"pthreadpool"}},
    {In::kFunction, "wait_worker_threads", {"pthreadpool"}},
    {In::kFunction, "caffe2::PThreadPool::run", {"pthreadpool"}},
    {In::kFunction, "caffe2::ThreadPool::run", {"caffe2's ThreadPool"}},
    {In::kFunction, "caffe2::WorkersPool", {"caffe2's ThreadPool"}},
    {In::kFunction, "caffe2::BlockingCounter", {"caffe2's ThreadPool"}},
    {In::kFunction, "c10::TaskThreadPool", {"c10::ThreadPool"}},
    {In::kFunction, "c10::ThreadPool", {"c10::ThreadPool"}},
    {In::kFunction, "Eigen::ThreadPool", {"Eigen's ThreadPool"}},
    {In::kFunction, "Eigen::Barrier", {"Eigen's ThreadPool"}},
    {In::kFunction, "Eigen::Notification", {"Eigen's ThreadPool"}},
    {In::kFunction, "tsl::BlockingCounter", {"TensorFlow's ThreadPool"}},
    {In::kFunction, "tensorflow::BlockingCounter", {"TensorFlow's ThreadPool"}},
    {In::kFunction, "onnxruntime::concurrency", {"onnxruntime's ThreadPool"}},
    {In::kFunction, "rayon_core", {"rayon"}},
    {In::kFunction, "tokio::runtime", {"tokio"}},
    {In::kFunction, "cv::ThreadPool", {"OpenCV's ThreadPool"}},
    {In::kFunction, "cv::WorkerThread", {"OpenCV's ThreadPool"}},
    {In::kFunction, "cv::parallel_for_", {"OpenCV's ThreadPool"}},
    {In::kFunction, "arrow::internal::ThreadPool", {"Arrow's ThreadPool"}},
    {In::kFunction, "arrow::internal::Executor", {"Arrow's ThreadPool"}},
    {In::kFunction, "arrow::ConcreteFutureImpl", {"Arrow's ThreadPool"}},
    {In::kFile, "numexpr/interpreter.cpp", {"numexpr"}},
    {In::kFunction, "vm_engine_iter_parallel", {"numexpr"}},
    {In::kFunction, "bli_thrcomm_barrier", {"BLIS"}},
    {In::kFunction, "faiss::ThreadPool", {"faiss"}},
};

}  // namespace

bool is_cut_off(const Thread& thread) {
  return !thread.frames.empty() &&
         std::none_of(thread.frames.begin(), thread.frames.end(), [](const Frame& frame) {
           return is_interpreter_code(frame) || is_of_interpreter_file(frame) ||
                  is_start_of_thread(frame);
         });
}

const NativePool* pool_of(const Frame& frame) {
  if (frame.language != Language::kNative) {
    return nullptr;
  }
  const auto* const found =
      std::find_if(std::begin(kPools), std::end(kPools), [&frame](const PoolRow& row) {
        switch (row.in) {
          case In::kModule:
            return frame.module.find(row.part) != std::string::npos;
          case In::kFunction:
            return frame.function.find(row.part) != std::string::npos;
          case In::kFile:
            return frame.file.find(row.part) != std::string::npos;
        }
        return false;
      });
  return found == std::end(kPools) ? nullptr : &found->pool;
}

}  // namespace ddpdoctor::model

// SPDX-License-Identifier: Apache-2.0
// glibc calls the handlers from fork() itself, from __run_fork_handlers or from
// __run_prefork_handlers; macOS from libSystem_atfork_prepare. Handlers of the child run there too:
// their names say so.
#include "collector/detectors/evidence/fork_handler.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>

#include "collector/detectors/evidence/native_locks.h"
#include "collector/model/native_code.h"

namespace ddpdoctor::detectors {
namespace {

using model::Frame;
using std::string_view;

bool runs_handlers(const Frame& frame) {
  constexpr std::array<string_view, 12> kFunctions = {"fork",
                                                      "__fork",
                                                      "__libc_fork",
                                                      "_Fork",
                                                      "vfork",
                                                      "__run_fork_handlers",
                                                      "__run_prefork_handlers",
                                                      "libSystem_atfork_prepare",
                                                      "_pthread_atfork_prepare_handlers",
                                                      "libSystem_atfork_parent",
                                                      "_pthread_atfork_parent_handlers",
                                                      "__run_postfork_handlers"};
  return frame.language == model::Language::kNative &&
         std::find(kFunctions.begin(), kFunctions.end(), plain_function(frame.function)) !=
             kFunctions.end();
}

bool is_of_system(const Frame& frame) {
  return model::is_libc_code(frame) || frame.module.starts_with("libsystem_") ||
         frame.module.starts_with("libSystem");
}

/// Between the frames of libc and those that say why.
bool only_waits(const Frame& frame) {
  return is_of_system(frame) || model::surrounds_wait(frame.function);
}

}  // namespace

std::optional<ForkHandler> handler_of_fork(const model::Thread& thread) {
  const auto fork = std::find_if(thread.frames.begin(), thread.frames.end(), runs_handlers);
  if (fork == thread.frames.begin() || fork == thread.frames.end()) {
    return std::nullopt;
  }
  const auto is_python = [](const Frame& frame) {
    return frame.language == model::Language::kPython;
  };
  if (std::any_of(thread.frames.begin(), fork, is_python) || !is_of_system(thread.frames.front())) {
    return std::nullopt;  // a handler that computes will end
  }
  const auto wait = std::find_if_not(thread.frames.begin(), fork, only_waits);
  const auto handler =
      std::find_if_not(std::make_reverse_iterator(fork), thread.frames.rend(), is_of_system);
  if (wait == fork || handler == thread.frames.rend() || model::is_interpreter_code(*handler) ||
      handler->function.find("child") != std::string::npos) {
    return std::nullopt;
  }
  return ForkHandler{.handler = &*handler, .wait = &*wait};
}

}  // namespace ddpdoctor::detectors

// SPDX-License-Identifier: Apache-2.0
// Mutexes of native libraries, from native frames alone: the function that takes the mutex, and
// other frames in code of the same object or library, which may hold it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collector/model/job_model.h"

namespace ddpdoctor::detectors {

/// "c10::ivalue::Future::then" of "c10::ivalue::Future::then(std::function<c10::IValue ()>, …)":
/// without arguments, template arguments, and the type of a result.
std::string plain_function(std::string_view function);

/// "c10::ivalue::Future" of a function of that class; empty for functions of C, of std and of
/// pybind11, and for lambdas.
std::string class_of(std::string_view function);

/// The index of the frame that takes the native mutex for which the thread sleeps: the first one
/// that is not of libc's or the language's own code of mutexes. A condition's wait is not meant.
std::optional<std::size_t> mutex_taker(const model::Thread& thread);

/// Both functions are of one class, one function, or (in C) one library with locks of its own: what
/// one of them holds, the other one may want.
bool is_same_code(const model::Frame& one, const model::Frame& other);

/// The innermost frame from index `from` on that is in the same code as `taker`.
const model::Frame* frame_in_code_of(const model::Frame& taker, const model::Thread& thread,
                                     std::size_t from);

/// The thread is inside that code and does not itself wait for a mutex there: it may hold the
/// mutex, also while it waits for a different one.
bool may_hold_mutex_of(const model::Frame& taker, const model::Thread& thread);

/// "c10::ivalue::Future::then", or the name of the file where the function has none.
std::string function_said(const model::Frame& frame);

/// For each thread, whether to leave it out of comparisons: an earlier one has the same functions
/// on its stack, or there were 400 different stacks before it. A dump may have thousands of
/// threads.
std::vector<bool> repeated_stacks(const model::Process& process);

}  // namespace ddpdoctor::detectors

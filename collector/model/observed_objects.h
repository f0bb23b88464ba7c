// SPDX-License-Identifier: Apache-2.0
// The classes of the objects whose methods running functions call, as read from memory.
#pragma once

#include <string_view>
#include <vector>

#include <sys/types.h>

#include "collector/model/job_model.h"
#include "collector/program/seen_object.h"

namespace ddpdoctor::model {

/// A call in a function on a thread's stack: tid, file, line, expression (of the object), class
/// ("queue.Queue"), and object, a number for it within its process.
inline constexpr std::string_view kObjectFact = "python-object";

/// The objects of the calls in the functions on this thread's stack.
std::vector<program::SeenObject> seen_objects(const JobModel& job, pid_t tid);

}  // namespace ddpdoctor::model

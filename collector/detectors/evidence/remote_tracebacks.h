// SPDX-License-Identifier: Apache-2.0
// A traceback of another process, quoted in that of the process that waited for its result: by Ray,
// concurrent.futures, multiprocessing.Pool and joblib.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "collector/model/job_model.h"

namespace ddpdoctor::detectors {

/// The process that raised, as far as the quotation names it.
struct Remote {
  std::string name{};            // of Ray's task: "Trainer.step"
  pid_t pid = 0;                 // 0: unknown
  std::string host{};            // its address
  model::CallSite awaited = {};  // the user's line that waited for the result
};

/// Ray's heading above the quoted frames: "ray::Trainer.step() (pid=2291, ip=10.0.0.4, …)", with
/// any text before it.
std::optional<Remote> ray_heading(std::string_view line);

/// "multiprocessing.pool.RemoteTraceback:", "concurrent.futures.process._RemoteTraceback:": a
/// quotation mark and the traceback follow.
bool announces_quotation(std::string_view line);

/// The frames, outermost first, of a process that multiprocessing or a DataLoader forked. A spawned
/// one imports its program again and shows so.
bool is_of_forked_child(const std::vector<model::CallSite>& frames);

/// The frames of a process that multiprocessing started in any way.
bool is_of_started_process(const std::vector<model::CallSite>& frames);

/// The user's innermost line in these frames, outermost first.
model::CallSite innermost_user(const std::vector<model::CallSite>& frames);

/// "EngineCore_DP0 (pid 412)" of "EngineCore_DP0 pid=412"; empty for an empty label.
std::string named_by_label(std::string_view label);

/// "a worker process", "Trainer.step (pid 2291 on 10.0.0.4)".
std::string named(const Remote& remote);

}  // namespace ddpdoctor::detectors

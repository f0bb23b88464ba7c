// SPDX-License-Identifier: Apache-2.0
#include "collector/values/user_frames.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "collector/model/questions.h"
#include "collector/stacks/python/frames.h"
#include "collector/stacks/python/generators.h"
#include "collector/stacks/python/iterators.h"
#include "collector/values/loop_reader.h"

namespace ddpdoctor::values {

namespace {

constexpr std::size_t kMostFrames = 12;    // of user functions, innermost first
constexpr std::size_t kMostSuspended = 6;  // of suspended generators

bool in_distributed(const stacks::PythonVisit::Thread& thread) {
  return std::any_of(thread.frames.begin(), thread.frames.end(), [](const auto& one) {
    return one.frame.file.find("torch/distributed/") != std::string::npos;
  });
}

/// A DataLoader worker does not decide which collectives the ranks call.
bool is_worker(const stacks::PythonVisit::Thread& thread) {
  return std::any_of(thread.frames.begin(), thread.frames.end(), [](const auto& one) {
    return one.frame.function == "_worker_loop" &&
           one.frame.file.find("torch/utils/data/") != std::string::npos;
  });
}

/// Selects the files whose frames are read: the user's. If no frame is in a user file, the job runs
/// an installed package, and files of packages that the user may have installed are read.
bool (*files_looked_at(const stacks::PythonVisit& visit))(std::string_view) {
  for (const auto& thread : visit.threads) {
    for (const stacks::PythonFrame& one : thread.frames) {
      if (model::is_user_file(one.frame.file) && !model::is_console_script(one.frame.file)) {
        return &model::is_user_file;
      }
    }
  }
  return &model::may_be_installed_by_user;
}

const stacks::RaisedException* handled_by(const stacks::ProcessStacks& process, pid_t tid) {
  const auto thread = std::find_if(process.threads.begin(), process.threads.end(),
                                   [tid](const auto& one) { return one.tid == tid; });
  return thread != process.threads.end() && thread->handles ? &*thread->handles : nullptr;
}

}  // namespace

std::vector<UserFrame> UserFrames::read(const Comprehension& comprehension) {
  std::vector<UserFrame> out;
  const auto looked_at = files_looked_at(visit_);
  for (const auto& thread : visit_.threads) {
    if ((thread.tid != visit_.stacks.pid && !in_distributed(thread)) || is_worker(thread)) {
      continue;
    }
    for (const stacks::PythonFrame& one : thread.frames) {
      if (out.size() < kMostFrames && !one.raw.shim && one.frame.line > 0 &&
          looked_at(one.frame.file) && stands(one.raw)) {
        add(one, handled_by(visit_.stacks, thread.tid), comprehension, out);
      }
    }
  }
  return out;
}

std::vector<UserFrame> UserFrames::of_generators(const std::vector<UserFrame>& frames) {
  std::vector<UserFrame> out;
  stacks::PythonObjects& objects = visit_.python.objects();
  const auto looked_at = files_looked_at(visit_);
  stacks::IterationReader iterations(objects);
  for (const UserFrame& user : frames) {
    for (const RemoteAddress generator :
         iterations.generators_of(user.python->raw.address, user.python->raw.code)) {
      const RemoteAddress at = stacks::generator_frame(objects, generator);
      const auto raw = at == 0 || out.size() >= kMostSuspended
                           ? std::nullopt
                           : stacks::read_python_frame(objects.memory(), objects.layout(), at);
      auto decoded = raw ? visit_.python.decode({*raw}) : std::vector<stacks::PythonFrame>();
      if (decoded.size() == 1 && decoded[0].frame.line > 0 && looked_at(decoded[0].frame.file)) {
        suspended_.push_back(std::move(decoded[0]));
        add(suspended_.back(), nullptr, {}, out);
      }
    }
  }
  return out;
}

void UserFrames::add(const stacks::PythonFrame& one, const stacks::RaisedException* handles,
                     const Comprehension& comprehension, std::vector<UserFrame>& out) {
  const program::SourceIndex* index = files_.index(visit_.stacks.pid, one.frame.file);
  const std::string name = one.frame.function.substr(one.frame.function.rfind('.') + 1);
  if (index != nullptr && program::is_frame_of_comprehension(name)) {
    if (comprehension) {
      comprehension(one.frame, *index);
    }
    return;
  }
  const program::Scope* function =
      index == nullptr ? nullptr : index->scope_of_frame(one.frame.line, name);
  if (function != nullptr) {
    out.push_back({.python = &one,
                   .index = *index,
                   .function = *function,
                   .scope = stacks::Scope(visit_.python.objects(), one.raw),
                   .way = Way(*index, files_.effects(visit_.stacks.pid), *function, one.frame.line),
                   .handles = handles});
  }
}

/// The frame is still at the instruction at which the stack was read.
bool UserFrames::stands(const stacks::RawPythonFrame& raw) {
  stacks::PythonObjects& objects = visit_.python.objects();
  const auto now = stacks::read_python_frame(objects.memory(), objects.layout(), raw.address);
  return now && now->code == raw.code && now->instruction == raw.instruction;
}

}  // namespace ddpdoctor::values

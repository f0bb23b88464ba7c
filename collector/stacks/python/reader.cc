// SPDX-License-Identifier: Apache-2.0
// PythonReader for a running interpreter: combines layout, frames and objects, and reads thread
// names and os.environ from the standard library.
#include "collector/stacks/python/reader.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "collector/stacks/python/event_loop.h"
#include "collector/stacks/python/exception.h"
#include "collector/stacks/python/frames.h"
#include "collector/stacks/python/objects.h"
#include "collector/stacks/python/runtime.h"

namespace ddpdoctor::stacks {

namespace {

constexpr std::size_t kMostVariables = 4096;
constexpr std::size_t kMostThreadNames = 4096;

/// Variables that describe the job; an environment contains secrets, so no others are read.
bool describes_job(std::string_view key) {
  constexpr auto kKeys =
      std::to_array<std::string_view>({"RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE",
                                       "GROUP_RANK", "NODE_RANK", "MASTER_ADDR", "MASTER_PORT"});
  constexpr auto kPrefixes = std::to_array<std::string_view>(
      {"NCCL_", "TORCH_", "OMP_", "CUDA_VISIBLE", "GLOO_", "TOKENIZERS_PARALLELISM", "SLURM_",
       "OMPI_COMM_WORLD_", "PMI_"});
  return std::ranges::find(kKeys, key) != kKeys.end() ||
         std::ranges::any_of(kPrefixes,
                             [key](std::string_view prefix) { return key.starts_with(prefix); });
}

/// The innermost frame belongs to the selector.
bool waits_in_event_loop(FrameDecoder& decoder, const RawPythonStack& stack) {
  const auto innermost =
      std::find_if(stack.begin(), stack.end(), [](const RawPythonFrame& one) { return !one.shim; });
  const auto frame =
      innermost == stack.end() ? std::nullopt : decoder.decode_code(innermost->code, 0);
  return frame && frame->file.ends_with("/selectors.py");
}

class LivePythonReader final : public PythonReader {
 public:
  LivePythonReader(RemoteMemory& memory, PythonHome home)
      : memory_(memory),
        home_(std::move(home)),
        objects_(memory_, home_.layout),
        decoder_(memory_, home_.layout, objects_) {
    objects_.set_modules(python_modules(memory_, home_));
    if (home_.hash_secret) {
      objects_.set_hash_secret(home_.hash_secret->first, home_.hash_secret->second);
    }
  }

  [[nodiscard]] std::string version() const override {
    return home_.version;
  }

  std::vector<PythonThreadState> thread_states() override {
    std::vector<PythonThreadState> states;
    std::map<pid_t, RemoteAddress> first;
    also_running_.clear();
    for (const PythonThread& thread : python_threads(memory_, home_)) {
      const auto [known, is_new] = first.emplace(thread.state.inner_tid, thread.state.address);
      if (is_new || thread.state.inner_tid == 0) {
        states.push_back(thread.state);
      } else {
        also_running_[known->second].push_back(thread.state.address);
      }
    }
    return states;
  }

  RawPythonStack read_stack(RemoteAddress thread_state) override {
    RawPythonStack stack = read_python_stack(memory_, home_.layout, thread_state);
    const auto others = also_running_.find(thread_state);
    if (others != also_running_.end()) {
      for (const RemoteAddress other : others->second) {
        const RawPythonStack more = read_python_stack(memory_, home_.layout, other);
        stack.insert(stack.end(), more.begin(), more.end());
      }
    }
    return stack;
  }

  std::vector<PythonFrame> decode(const RawPythonStack& stack) override {
    return decoder_.decode(stack);
  }

  std::optional<Frame> decode_code(RemoteAddress code, int lasti) override {
    return decoder_.decode_code(code, lasti);
  }

  RemoteAddress handled_exception(RemoteAddress thread_state) override {
    return stacks::handled_exception(objects_, thread_state);
  }

  RemoteAddress printed_exception() override {
    return stacks::printed_exception(objects_);
  }

  std::optional<RaisedException> decode_exception(RemoteAddress exception) override {
    return describe_exception(objects_, exception, [this](RemoteAddress code, int lasti) {
      return decoder_.decode_code(code, lasti);
    });
  }

  std::vector<Frame> awaiting(const RawPythonStack& stack) override {
    if (!waits_in_event_loop(decoder_, stack)) {
      return {};
    }
    std::vector<Frame> out;
    for (const RawPythonFrame& one : stack) {
      const auto frame = decoder_.decode_code(one.code, 0);
      if (!frame || !runs_event_loop(*frame)) {
        continue;
      }
      for (PythonFrame& inner :
           decoder_.decode(awaiting_frames(objects_, decoder_.local(one, "future")))) {
        out.push_back(std::move(inner.frame));
      }
      break;
    }
    return out;
  }

  RemoteAddress lost_exception() override {
    return stacks::lost_exception(objects_);
  }

  std::optional<pid_t> gil_holder() override {
    return python_gil_holder(memory_, home_);
  }

  std::vector<std::pair<pid_t, std::string>> thread_names() override {
    const auto module = objects_.module("threading");
    const auto active = module ? objects_.item(*module, "_active") : std::nullopt;
    if (!active) {
      return {};
    }
    std::map<std::uint64_t, pid_t> tids;
    for (const PythonThread& thread : python_threads(memory_, home_)) {
      tids.emplace(thread.ident, thread.state.inner_tid);
    }
    std::vector<std::pair<pid_t, std::string>> names;
    const auto entries = objects_.items(*active, kMostThreadNames);
    expect_keys(entries);
    for (const auto& [key, thread] : entries) {
      const auto ident = objects_.integer(key);
      const auto tid = ident ? tids.find(static_cast<std::uint64_t>(*ident)) : tids.end();
      const auto name = tid == tids.end() ? std::nullopt : objects_.attribute(thread, "_name");
      const auto text = name ? objects_.string(*name, 128) : std::nullopt;
      if (text && tid->second != 0) {
        names.emplace_back(tid->second, base::printable(*text));
      }
    }
    return names;
  }

  std::map<std::string, std::string> environment() override {
    const auto module = objects_.module("os");
    const auto environ = module ? objects_.item(*module, "environ") : std::nullopt;
    const auto variables = environ ? objects_.attribute(*environ, "_data") : std::nullopt;
    if (!variables) {
      return {};
    }
    std::map<std::string, std::string> found;
    const auto entries = objects_.items(*variables, kMostVariables);
    expect_keys(entries);
    for (const auto& [key, value] : entries) {
      const auto name = objects_.bytes(key, 256);
      if (name && describes_job(*name)) {
        found.emplace(base::printable(*name),
                      base::printable(objects_.bytes(value, 4096).value_or("")));
      }
    }
    return found;
  }

  PythonObjects& objects() override {
    return objects_;
  }

 private:
  void expect_keys(const std::vector<std::pair<RemoteAddress, RemoteAddress>>& entries) {
    std::vector<RemoteAddress> keys;
    keys.reserve(entries.size());
    for (const auto& [key, value] : entries) {
      keys.push_back(key);
    }
    objects_.expect(keys);
  }

  RemoteMemory& memory_;
  PythonHome home_;
  PythonObjects objects_;
  FrameDecoder decoder_;
  // A thread that entered a subinterpreter has a thread state in each. The list of interpreters is
  // newest first, and so is the stack.
  std::map<RemoteAddress, std::vector<RemoteAddress>> also_running_;
};

}  // namespace

std::unique_ptr<PythonReader> open_python(Target& target, std::string& problem) {
  auto home = find_python(target, problem);
  if (!home) {
    return nullptr;
  }
  return std::make_unique<LivePythonReader>(target.memory(), std::move(*home));
}

}  // namespace ddpdoctor::stacks

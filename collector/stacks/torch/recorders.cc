// SPDX-License-Identifier: Apache-2.0
// The recorders of a process: gloo's and NCCL's, each in its own library.
#include "collector/stacks/torch/recorders.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/stacks/torch/flight_recorder.h"

namespace ddpdoctor::stacks {
namespace {

/// `instance` in FlightRecorder<Event>::get(): a pointer that is null until the first collective is
/// recorded. The event's namespace for CUDA changed from at::cuda to c10::cuda.
struct Recorder {
  std::string_view backend;  // the backend whose calls it records
  std::span<const std::string_view> libraries;
  std::span<const std::string_view> names;
};
constexpr std::array<std::string_view, 1> kGlooLibraries{"libtorch_cpu"};
constexpr std::array<std::string_view, 1> kGlooNames{
    "_ZZN4c10d14FlightRecorderIN3c105EventEE3getEvE8instance"};
constexpr std::array<std::string_view, 2> kNcclLibraries{"libtorch_cuda", "libtorch_hip"};
constexpr std::array<std::string_view, 2> kNcclNames{
    "_ZZN4c10d14FlightRecorderIN3c104cuda9CUDAEventEE3getEvE8instance",
    "_ZZN4c10d14FlightRecorderIN2at4cuda9CUDAEventEE3getEvE8instance"};
constexpr std::array<Recorder, 2> kRecorders{
    {{.backend = "gloo", .libraries = kGlooLibraries, .names = kGlooNames},
     {.backend = "nccl", .libraries = kNcclLibraries, .names = kNcclNames}}};

/// Entries share few call sites: each is decoded once.
class CallSites {
 public:
  explicit CallSites(PythonReader& python) : python_(python) {}

  std::vector<PythonLocation> decode(const std::vector<CodePoint>& calls) {
    std::vector<PythonLocation> stack;
    stack.reserve(calls.size());
    for (const CodePoint& call : calls) {
      auto known = known_.find(call);
      if (known == known_.end()) {
        known = known_.emplace(call, locate(call)).first;
      }
      if (known->second) {
        stack.push_back(*known->second);
      }
    }
    return stack;
  }

 private:
  std::optional<PythonLocation> locate(const CodePoint& call) {
    const auto frame = python_.decode_code(call.code, call.lasti);
    if (!frame) {
      return std::nullopt;
    }
    return PythonLocation{.file = frame->file, .line = frame->line, .function = frame->function};
  }

  PythonReader& python_;
  std::map<CodePoint, std::optional<PythonLocation>> known_;
};

void append_records(RecorderReading&& reading, PythonReader* python, TorchState& state) {
  std::optional<CallSites> sites;
  if (python != nullptr) {
    sites.emplace(*python);
  }
  state.records.reserve(state.records.size() + reading.entries.size());
  for (RecorderEntry& entry : reading.entries) {
    if (sites) {
      entry.record.stack = sites->decode(entry.calls);
    }
    if (entry.record.group_description == "undefined") {  // torch writes this if there is none
      entry.record.group_description.clear();
    }
    state.records.push_back(std::move(entry.record));
  }
}

bool is_library(const Mapping& mapping, const Recorder& recorder) {
  const std::string_view file = base::file_name(mapping.path);
  return std::ranges::any_of(recorder.libraries,
                             [file](std::string_view name) { return file.starts_with(name); });
}

/// Remote addresses of the variables; of several in a library, one is in use.
std::vector<RemoteAddress> variables(Target& target, const Recorder& recorder) {
  std::vector<RemoteAddress> found;
  for (const Mapping& mapping : target.maps().all()) {
    if (!found.empty() || !is_library(mapping, recorder)) {
      continue;
    }
    const auto object = target.object_at(mapping.start);
    for (const std::string_view name : recorder.names) {
      const auto value =
          object ? object->file->variable(name, sizeof(RemoteAddress)) : std::nullopt;
      if (value) {
        found.push_back(object->bias + *value);
      }
    }
  }
  return found;
}

/// True if the process may have made calls that this recorder keeps.
bool may_hold_calls(Target& target, const Recorder& recorder, const TorchState& state) {
  if (!state.groups.empty()) {
    return has_backend(state.groups, recorder.backend);
  }
  return std::ranges::any_of(target.maps().all(), [&recorder](const Mapping& mapping) {
    return is_library(mapping, recorder);
  });
}

/// Reads one recorder; `problem` has the reason if its calls are unknown, and is empty otherwise.
std::string read_recorder(Target& target, PythonReader* python, const Recorder& recorder,
                          const TorchLayouts& layouts, TorchState& state) {
  const std::vector<RemoteAddress> instances = variables(target, recorder);
  if (instances.empty()) {
    return fmt::format(
        "torch {} has no symbol of {}'s flight recorder (older than 2.8, or stripped)",
        state.version, recorder.backend);
  }
  RemoteAddress place = 0;
  for (const RemoteAddress instance : instances) {
    const auto value = target.memory().get<RemoteAddress>(instance);
    if (!value) {
      return "the flight recorder cannot be read";
    }
    place = place != 0 ? place : *value;
  }
  if (place == 0) {  // no collective of this kind yet, for known releases
    return layouts.exact != nullptr
               ? ""
               : fmt::format("{}'s flight recorder has no calls, and torch {} is not known",
                             recorder.backend, state.version);
  }
  RecorderReading reading = read_flight_recorder(target.memory(), place, layouts);
  if (reading.read) {
    append_records(std::move(reading), python, state);
  }
  return reading.problem;
}

}  // namespace

bool has_backend(const std::vector<TorchGroup>& groups, std::string_view backend) {
  return std::ranges::any_of(groups, [backend](const TorchGroup& group) {
    return group.backend.find(backend) != std::string::npos;
  });
}

void read_recorders(Target& target, PythonReader* python, const TorchLayouts& layouts,
                    TorchState& state) {
  bool any_read = false;
  for (const Recorder& recorder : kRecorders) {
    const std::string problem = read_recorder(target, python, recorder, layouts, state);
    any_read = any_read || problem.empty();
    if (!problem.empty() && may_hold_calls(target, recorder, state)) {
      state.problem = problem;
    }
  }
  // All backends of this process must be known; otherwise missing calls would accuse it wrongly.
  state.recorder_read = any_read && state.problem.empty();
  // gloo and NCCL have separate recorders, and one job may use both.
  std::ranges::stable_sort(state.records, {}, &FlightRecord::created_ns);
}

}  // namespace ddpdoctor::stacks

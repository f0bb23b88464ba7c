// SPDX-License-Identifier: Apache-2.0
// What torch.distributed knows inside a process: the parts put together.
#include "collector/stacks/torch/state.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/stacks/torch/flight_recorder.h"
#include "collector/stacks/torch/groups.h"
#include "collector/stacks/torch/layouts.h"
#include "collector/stacks/torch/record_groups.h"
#include "collector/stacks/torch/values.h"
#include "collector/stacks/torch/version.h"

namespace ddpdoctor::stacks {
namespace {

/// `instance` in FlightRecorder<Event>::get(): a pointer, null until the first collective is
/// recorded. The event's namespace for CUDA changed from at::cuda to c10::cuda.
struct RecorderSymbol {
  std::string_view object;
  std::string_view name;
};
constexpr auto kRecorders = std::to_array<RecorderSymbol>({
    {.object = "libtorch_cpu", .name = "_ZZN4c10d14FlightRecorderIN3c105EventEE3getEvE8instance"},
    {.object = "libtorch_cuda",
     .name = "_ZZN4c10d14FlightRecorderIN3c104cuda9CUDAEventEE3getEvE8instance"},
    {.object = "libtorch_cuda",
     .name = "_ZZN4c10d14FlightRecorderIN2at4cuda9CUDAEventEE3getEvE8instance"},
});

bool has_torch(const Maps& maps) {
  return std::ranges::any_of(maps.all(), [](const Mapping& mapping) {
    return base::file_name(mapping.path).starts_with("libtorch_cpu");
  });
}

std::optional<int> number(const std::map<std::string, std::string>& variables,
                          const std::string& key) {
  const auto found = variables.find(key);
  if (found == variables.end()) {
    return std::nullopt;
  }
  int value = 0;
  const std::string& digits = found->second;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  const bool whole = error == std::errc() && end == digits.data() + digits.size();
  return whole && value >= 0 ? std::optional(value) : std::nullopt;
}

/// Calls of all entries share few places: each is decoded once.
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
    if (entry.record.group_description == "undefined") {  // torch's word for none
      entry.record.group_description.clear();
    }
    state.records.push_back(std::move(entry.record));
  }
}

/// Remote address of the symbol in the first object whose file name begins so.
std::optional<RemoteAddress> variable(Target& target, const RecorderSymbol& symbol) {
  for (const Mapping& mapping : target.maps().all()) {
    if (!base::file_name(mapping.path).starts_with(symbol.object)) {
      continue;
    }
    const auto object = target.object_at(mapping.start);
    const auto value =
        object ? object->file->variable(symbol.name, sizeof(RemoteAddress)) : std::nullopt;
    if (value) {
      return object->bias + *value;
    }
  }
  return std::nullopt;
}

void read_recorders(Target& target, PythonReader* python, const TorchLayout& layout,
                    TorchState& state) {
  bool symbol_seen = false;
  bool unused = false;
  for (const RecorderSymbol& symbol : kRecorders) {
    const auto instance = variable(target, symbol);
    if (!instance) {
      continue;
    }
    symbol_seen = true;
    const auto recorder = target.memory().get<RemoteAddress>(*instance);
    if (!recorder) {
      state.problem = "the flight recorder cannot be read";
      continue;
    }
    if (*recorder == 0) {
      unused = true;  // no collective of this kind yet
      continue;
    }
    RecorderReading reading = read_flight_recorder(target.memory(), *recorder, layout);
    if (!reading.read) {
      state.problem = reading.problem;
      continue;
    }
    state.recorder_read = true;
    append_records(std::move(reading), python, state);
  }
  if (!symbol_seen) {
    state.problem = "libtorch has no symbol of the flight recorder (it was stripped)";
  }
  state.recorder_read = state.recorder_read || (unused && state.problem.empty());
  // gloo and NCCL have a recorder each; one job may use both.
  std::ranges::stable_sort(state.records, {}, &FlightRecord::created_ns);
}

}  // namespace

std::optional<TorchState> read_torch_state(Target& target, PythonReader* python) {
  if (!has_torch(target.maps())) {
    return std::nullopt;
  }
  TorchState state;
  state.version = torch_version(target, python);
  const TorchLayout* layout = torch_layout(state.version);
  std::optional<std::int64_t> groups_made;
  if (python != nullptr) {
    auto groups = read_torch_groups(python->objects(), layout);
    if (!groups) {
      return std::nullopt;
    }
    const auto variables = python->environment();
    state.groups = std::move(groups->groups);
    groups_made = groups->made;
    state.rank = groups->rank ? groups->rank : number(variables, "RANK");
    state.world_size = groups->world_size ? groups->world_size : number(variables, "WORLD_SIZE");
  }
  if (layout == nullptr) {
    state.problem = state.version.empty()
                        ? "the version of torch could not be told"
                        : fmt::format("the layout of torch {} is not known", state.version);
    return state;
  }
  read_recorders(target, python, *layout, state);
  name_records(state, groups_made);
  return state;
}

void show_torch_values(Target& target, PythonReader& python) {
  if (!has_torch(target.maps())) {
    return;
  }
  const TorchLayout* layout = torch_layout(torch_version(target, &python));
  PythonObjects& objects = python.objects();
  auto groups = read_torch_groups(objects, layout).value_or(TorchGroups{});
  objects.set_foreign_repr([&objects, layout, names = std::move(groups.names)](
                               RemoteAddress object, std::string_view type) {
    return torch_repr(objects, layout, names, object, type);
  });
}

}  // namespace ddpdoctor::stacks

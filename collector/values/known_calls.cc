// SPDX-License-Identifier: Apache-2.0
#include "collector/values/known_calls.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>

namespace ddpdoctor::values {

namespace {

std::optional<int> number_in(const std::map<std::string, std::string>& variables,
                             const std::string& name) {
  const auto found = variables.find(name);
  if (found == variables.end()) {
    return std::nullopt;
  }
  int value = 0;
  const char* const end = found->second.data() + found->second.size();
  const auto [stop, error] = std::from_chars(found->second.data(), end, value);
  return error == std::errc() && stop == end && value >= 0 ? std::optional(value) : std::nullopt;
}

enum class Answer {
  kRank,
  kIsFirst,  // whether the rank is 0
  kIsLast,
  kWorldSize,
  kGroupExists,
  kYes,          // true on every rank that has the function
  kNoInCpuBuild  // of torch
};

struct Row {
  std::string_view module;
  std::string_view qualname;
  Answer answer;
};

constexpr std::string_view kC10d = "torch.distributed.distributed_c10d";

// Lightning has two package names with the same modules below.
constexpr auto kRows = std::to_array<Row>({
    {kC10d, "get_rank", Answer::kRank},
    {kC10d, "get_world_size", Answer::kWorldSize},
    {kC10d, "is_initialized", Answer::kGroupExists},
    {"torch.distributed", "is_available", Answer::kYes},
    {"torch.cuda", "is_available", Answer::kNoInCpuBuild},
    {"accelerate.accelerator", "Accelerator.process_index", Answer::kRank},
    {"accelerate.accelerator", "Accelerator.num_processes", Answer::kWorldSize},
    {"accelerate.accelerator", "Accelerator.is_main_process", Answer::kIsFirst},
    {"accelerate.accelerator", "Accelerator.is_last_process", Answer::kIsLast},
    {"accelerate.state", "AcceleratorState.is_main_process", Answer::kIsFirst},
    {"accelerate.state", "AcceleratorState.is_last_process", Answer::kIsLast},
    {"accelerate.state", "PartialState.is_main_process", Answer::kIsFirst},
    {"accelerate.state", "PartialState.is_last_process", Answer::kIsLast},
    {"transformers.trainer", "Trainer.is_world_process_zero", Answer::kIsFirst},
    {"transformers.training_args", "TrainingArguments.process_index", Answer::kRank},
    {"transformers.training_args", "TrainingArguments.world_size", Answer::kWorldSize},
    {"pytorch.trainer.trainer", "Trainer.global_rank", Answer::kRank},
    {"pytorch.trainer.trainer", "Trainer.is_global_zero", Answer::kIsFirst},
    {"pytorch.trainer.trainer", "Trainer.world_size", Answer::kWorldSize},
    {"pytorch.core.module", "LightningModule.global_rank", Answer::kRank},
    {"deepspeed.comm.comm", "get_rank", Answer::kRank},
    {"deepspeed.comm.comm", "get_world_size", Answer::kWorldSize},
});

/// "pytorch.core.module" of "lightning.pytorch.core.module" and "pytorch_lightning.core.module".
std::string without_brand(std::string_view module) {
  constexpr std::string_view kNew = "lightning.pytorch.";
  constexpr std::string_view kOld = "pytorch_lightning.";
  const std::size_t brand = module.starts_with(kNew)   ? kNew.size()
                            : module.starts_with(kOld) ? kOld.size()
                                                       : 0;
  return brand == 0 ? std::string(module) : "pytorch." + std::string(module.substr(brand));
}

std::optional<Value> number(std::optional<int> value) {
  return value ? std::optional(Value::number(std::int64_t{*value})) : std::nullopt;
}

}  // namespace

ProcessFacts facts_of(const stacks::ProcessStacks& process) {
  ProcessFacts facts;
  if (process.torch) {
    facts.rank = process.torch->rank;
    facts.world_size = process.torch->world_size;
    facts.group_exists = !process.torch->groups.empty();
    facts.torch_version = process.torch->version;
  }
  // Once a group exists, torchrun's variables are what init_process_group() used.
  if (process.python && facts.group_exists) {
    const auto& variables = process.python->environment;
    facts.rank = facts.rank ? facts.rank : number_in(variables, "RANK");
    facts.world_size = facts.world_size ? facts.world_size : number_in(variables, "WORLD_SIZE");
  }
  return facts;
}

std::optional<Value> known_answer(const ProcessFacts& facts, std::string_view module,
                                  std::string_view qualname, bool whole_world) {
  const std::string own = without_brand(module);
  const auto* const row = std::ranges::find_if(
      kRows, [&](const Row& each) { return each.module == own && each.qualname == qualname; });
  if (row == kRows.end() || !whole_world) {
    return std::nullopt;
  }
  switch (row->answer) {
    case Answer::kRank:
      return number(facts.rank);
    case Answer::kWorldSize:
      return number(facts.world_size);
    case Answer::kIsFirst:
      return facts.rank ? std::optional(Value::boolean(*facts.rank == 0)) : std::nullopt;
    case Answer::kIsLast:
      return facts.rank && facts.world_size
                 ? std::optional(Value::boolean(*facts.rank == *facts.world_size - 1))
                 : std::nullopt;
    case Answer::kGroupExists:
      return facts.group_exists ? std::optional(Value::boolean(true)) : std::nullopt;
    case Answer::kYes:
      return Value::boolean(true);
    case Answer::kNoInCpuBuild:
      return facts.torch_version.ends_with("+cpu") ? std::optional(Value::boolean(false))
                                                   : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace ddpdoctor::values

// SPDX-License-Identifier: Apache-2.0
// What libraries call back, run, or restrict to some ranks; and queries on the table of their
// calls.
#include <algorithm>
#include <array>

#include "base/text.h"
#include "collector/program/libraries/libraries.h"

namespace ddpdoctor::program {
namespace {

constexpr auto kData = Source::kData;
constexpr auto kSame = Source::kUniform;

// module, class, method, argument without self, what it is
constexpr auto kHooks = std::to_array<HookRow>({
    {"lightning", "LightningModule", "training_step", 0, kData},
    {"lightning", "LightningModule", "training_step", 1, kSame},
    {"lightning", "LightningModule", "validation_step", 0, kData},
    {"lightning", "LightningModule", "validation_step", 1, kSame},
    {"lightning", "LightningModule", "test_step", 0, kData},
    {"lightning", "LightningModule", "test_step", 1, kSame},
    {"lightning", "LightningModule", "on_train_batch_end", 0, kData},
    {"lightning", "LightningModule", "on_train_batch_end", 1, kData},
    {"lightning", "LightningModule", "on_train_batch_end", 2, kSame},
    {"lightning", "Callback", "on_train_batch_end", 2, kData},
    {"lightning", "Callback", "on_train_batch_end", 3, kData},
    {"lightning", "Callback", "on_train_batch_end", 4, kSame},
    {"transformers", "Trainer", "compute_loss", 1, kData},
    {"transformers", "Trainer", "training_step", 1, kData},
    {"transformers", "TrainerCallback", "on_evaluate", 3, kData},
    {"torch.nn", "Module", "forward", 0, kData},
    {"torch.utils.data", "Dataset", "__getitem__", 0, kData},
});

// module, call, keyword of the function, its position, whether its first argument is the rank
constexpr auto kRuns = std::to_array<RunsRow>({
    {"torch.multiprocessing", "spawn", "fn", 0, true},
    {"torch.multiprocessing", "start_processes", "fn", 0, true},
    {"torch_xla", "spawn", "fn", 0, true},
    {"torch.multiprocessing", "Process", "target", 1, false},
    {"multiprocessing", "Process", "target", 1, false},
    {"threading", "Thread", "target", 1, false},
    {"accelerate", "notebook_launcher", "function", 0, false},
});

// module, call, position of the function, what triggers it, alone
constexpr auto kHandlers = std::to_array<HandlerRow>({
    {"signal", "signal", 1, Source::kSignal, false},
    {"asyncio", "add_signal_handler", 1, Source::kSignal, true},
    {"threading", "Timer", 1, Source::kClock, false},
});

// module, call, whether the order is random
constexpr auto kOrders = std::to_array<OrderRow>({
    {"os", "listdir", false},
    {"os", "scandir", false},
    {"os", "walk", false},
    {"glob", "glob", false},
    {"glob", "iglob", false},
    {"random", "sample", true},
    {"numpy.random", "permutation", true},
    {"torch", "randperm", true},
});

// module, decorator or wrapper; `alone`: no other library has an attribute of that name
struct LetsInRow {
  std::string_view module;
  std::string_view name;
};
constexpr auto kLetsIn = std::to_array<LetsInRow>({
    {"lightning", "rank_zero_only"},
    {"lightning", "rank_zero_experiment"},
    {"lightning_utilities", "rank_zero_only"},
    {"accelerate", "on_main_process"},
    {"accelerate", "on_local_main_process"},
    {"accelerate", "on_last_process"},
    {"accelerate", "on_process"},
    {"accelerate", "on_local_process"},
    {"ignite", "one_rank_only"},
});

// module, class, attribute that the loop of its trainer reads after each step, what it asks for
struct AsksTrainerRow {
  std::string_view module;
  std::string_view owner;
  std::string_view name;
  TrainerTask task = TrainerTask::kEnd;
};
constexpr auto kAsksTrainer = std::to_array<AsksTrainerRow>({
    {"lightning", "Trainer", "should_stop"},
    {"transformers", "TrainerControl", "should_training_stop"},
    {"transformers", "TrainerControl", "should_epoch_stop"},
    {"transformers", "TrainerControl", "should_evaluate", TrainerTask::kEvaluation},
    {"transformers", "TrainerControl", "should_save", TrainerTask::kSave},
});

struct LogRow {
  std::string_view name;
  LogCall does = LogCall::kOther;
};
constexpr auto kLog = std::to_array<LogRow>({
    {"debug", LogCall::kWrites},
    {"info", LogCall::kWrites},
    {"warning", LogCall::kWrites},
    {"error", LogCall::kWrites},
    {"critical", LogCall::kWrites},
    {"exception", LogCall::kWrites},
    {"log", LogCall::kWrites},
    {"setLevel", LogCall::kSets},
    {"addHandler", LogCall::kSets},
    {"addFilter", LogCall::kSets},
    {"disable", LogCall::kSets},
    {"basicConfig", LogCall::kSets},
    {"filter", LogCall::kHook},
    {"emit", LogCall::kHook},
    {"format", LogCall::kHook},
    {"handle", LogCall::kHook},
});

bool is_in(const CallRow& row, std::string_view qualified) {
  return lies_in(qualified, row.module);
}

}  // namespace

LogCall log_call(std::string_view method) {
  const auto found =
      std::find_if(kLog.begin(), kLog.end(), [&](const LogRow& row) { return row.name == method; });
  return found == kLog.end() ? LogCall::kOther : found->does;
}

std::span<const HookRow> hooks() {
  return kHooks;
}

const RunsRow* runs_function(std::string_view qualified) {
  const std::string_view last = qualified.substr(qualified.rfind('.') + 1);
  const auto found = std::find_if(kRuns.begin(), kRuns.end(), [&](const RunsRow& row) {
    return row.name == last && lies_in(qualified, row.module);
  });
  return found == kRuns.end() ? nullptr : &*found;
}

const HandlerRow* handler_of(std::string_view qualified) {
  const std::string_view last = qualified.substr(qualified.rfind('.') + 1);
  const auto found = std::find_if(kHandlers.begin(), kHandlers.end(), [&](const HandlerRow& row) {
    return row.name == last && lies_in(qualified, row.module);
  });
  return found == kHandlers.end() ? nullptr : &*found;
}

const HandlerRow* handler_of_attribute(std::string_view attribute) {
  const auto found = std::find_if(kHandlers.begin(), kHandlers.end(), [&](const HandlerRow& row) {
    return row.alone && row.name == attribute;
  });
  return found == kHandlers.end() ? nullptr : &*found;
}

const OrderRow* order_of_name(std::string_view qualified) {
  const std::string_view last = qualified.substr(qualified.rfind('.') + 1);
  const auto found = std::find_if(kOrders.begin(), kOrders.end(), [&](const OrderRow& row) {
    return row.name == last && lies_in(qualified, row.module);
  });
  return found == kOrders.end() ? nullptr : &*found;
}

const CallRow* call_of_name(std::string_view qualified) {
  const std::string_view last = qualified.substr(qualified.rfind('.') + 1);
  const auto found = std::find_if(calls().begin(), calls().end(), [&](const CallRow& row) {
    const bool itself = row.name.empty() && qualified.ends_with(row.owner);
    return is_in(row, qualified) && (itself || (row.owner.empty() && row.name == last));
  });
  return found == calls().end() ? nullptr : &*found;
}

const CallRow* call_of_member(std::string_view qualified_class, std::string_view method) {
  const auto found = std::find_if(calls().begin(), calls().end(), [&](const CallRow& row) {
    return row.name == method && !row.owner.empty() && is_in(row, qualified_class) &&
           qualified_class.ends_with("." + std::string(row.owner));
  });
  return found == calls().end() ? nullptr : &*found;
}

const CallRow* call_of_attribute(std::string_view method) {
  // Python and its common libraries have calls of their own under these names.
  constexpr auto kCommon = std::to_array<std::string_view>(
      {"reduce",     "gather",   "save",    "load",       "step",       "sync",
       "compute",    "join",     "test",    "fit",        "train",      "predict",
       "evaluate",   "backward", "forward", "state_dict", "barrier",    "validate",
       "broadcast",  "unshard",  "scatter", "prepare",    "eval_batch", "load_state_dict",
       "train_batch"});
  if (std::find(kCommon.begin(), kCommon.end(), method) != kCommon.end()) {
    return nullptr;
  }
  const auto found = std::find_if(calls().begin(), calls().end(), [&](const CallRow& row) {
    return !row.name.empty() && row.name == method;
  });
  return found == calls().end() ? nullptr : &*found;
}

const CallRow* call_of_context(std::string_view name) {
  const auto found = std::find_if(calls().begin(), calls().end(), [&](const CallRow& row) {
    const bool context = row.does == CallDoes::kShields || row.does == CallDoes::kHoldsGradients ||
                         row.does == CallDoes::kFreesOfGradients;
    return context && (row.name.empty() ? row.owner : row.name) == name;
  });
  return found == calls().end() ? nullptr : &*found;
}

bool lets_main_first(std::string_view name) {
  return std::any_of(calls().begin(), calls().end(), [name](const CallRow& row) {
    return row.does == CallDoes::kLetsMainFirst && row.name == name;
  });
}

bool is_ddp(std::string_view qualified) {
  return qualified.substr(qualified.rfind('.') + 1) == "DistributedDataParallel" &&
         (qualified.find('.') == qualified.npos || lies_in(qualified, "torch"));
}

bool broadcasts(std::string_view name) {
  return std::any_of(calls().begin(), calls().end(), [&](const CallRow& row) {
    return row.collective == "broadcast" && row.name == name && name != "forward";
  });
}

bool gathers(std::string_view name) {
  return std::any_of(calls().begin(), calls().end(), [&](const CallRow& row) {
    return row.collective.starts_with("all_gather") && row.name == name && name != "forward";
  });
}

bool unshards_by(std::string_view collective) {
  return std::any_of(calls().begin(), calls().end(), [&](const CallRow& row) {
    return row.does == CallDoes::kUnshards && row.collective == collective;
  });
}

bool calls_back_as_often_as_it_likes(std::string_view file) {
  constexpr auto kFiles = std::to_array<std::string_view>(
      {"/torch/optim/lbfgs.py", "/scipy/optimize/", "/tenacity/", "/backoff/", "/retrying.py"});
  return base::contains_any(file, kFiles);
}

bool lets_ranks_in(std::string_view qualified) {
  const std::string_view last = qualified.substr(qualified.rfind('.') + 1);
  return std::any_of(kLetsIn.begin(), kLetsIn.end(), [&](const LetsInRow& row) {
    return row.name == last && lies_in(qualified, row.module);
  });
}

std::optional<TrainerTask> asked_of_trainer(std::string_view attribute) {
  const auto row = std::find_if(kAsksTrainer.begin(), kAsksTrainer.end(),
                                [&](const AsksTrainerRow& one) { return one.name == attribute; });
  return row == kAsksTrainer.end() ? std::nullopt : std::optional(row->task);
}

bool has_buffers(std::string_view qualified) {
  constexpr std::array<std::string_view, 7> kClasses = {
      "BatchNorm1d",     "BatchNorm2d",     "BatchNorm3d",  "LazyBatchNorm1d",
      "LazyBatchNorm2d", "LazyBatchNorm3d", "SyncBatchNorm"};
  const std::size_t dot = qualified.rfind('.');
  return dot != qualified.npos && lies_in(qualified, "torch.nn") &&
         std::find(kClasses.begin(), kClasses.end(), qualified.substr(dot + 1)) != kClasses.end();
}

bool keeps_results(std::string_view qualified) {
  constexpr std::array<std::string_view, 6> kCaches = {
      "functools.lru_cache", "functools.cache",         "functools.cached_property",
      "cachetools.cached",   "cachetools.cachedmethod", "async_lru.alru_cache"};
  return std::find(kCaches.begin(), kCaches.end(), qualified) != kCaches.end();
}

bool lets_ranks_in_by_attribute(std::string_view attribute) {
  return std::any_of(kLetsIn.begin(), kLetsIn.end(),
                     [&](const LetsInRow& row) { return row.name == attribute; });
}

}  // namespace ddpdoctor::program

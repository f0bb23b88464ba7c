// SPDX-License-Identifier: Apache-2.0
// Interface between the trampolines and the probes: which function was called with which registers,
// and the address of the real one.
#pragma once

#include <cstdint>

#include "wire/events.h"

namespace ddpdoctor::agent {

/// What a hooked function means to the probes.
enum class Meaning : std::uint8_t {
  kCall,
  kGetBackend,
  kStoreGet,
  kStoreWait,
  kStoreGetOldString,
  kStoreWaitOldString,
  kEnqueue,
  kFinish,
  kFinishError,
  kGlooConstructor,
  kReducerConstructor,
  kReducerWithLimits,  // one more argument: limits per bucket
  kReducerOldStrings,  // the same, with names as libstdc++'s old strings
  kPrepareBackward,
  kPrepareForward,
  kAutogradHook,
  kVariableReady,
  kFinalizeBackward,
  kStaticGraph,
  kMessageWait,
  kWrapperConstructor
};

/// How to read the arguments of an operation; see c10d_hooks.inc.
struct Hook {
  const char* symbol;
  Meaning meaning;
  wire::Operation operation;
  std::int8_t tensor_argument;
  std::int8_t tensor_form;
  std::int8_t options_argument;
  std::int8_t has_root;
  std::int8_t has_reduce_op;
};

inline constexpr int kHooks = 87;
extern const Hook hooks[kHooks];

/// The arguments of a call, in registers or on the stack. If the function returns an object, the
/// first argument is the address for it.
struct Arguments {
  std::uint64_t value[10];
};

// Probes. `entered` returns whether the call counts (is not inside another one); `left` receives
// that result.
bool call_entered(const Hook& hook, const Arguments& arguments);
void call_left(const Hook& hook, const Arguments& arguments, bool counted, bool threw,
               std::uint64_t result);
void store_entered(const Hook& hook, const Arguments& arguments);
void store_left(const Hook& hook, const Arguments& arguments, bool threw);
void backend_found(const Arguments& arguments, std::uint64_t result);
void work_event(Meaning meaning, const Arguments& arguments);
void group_constructed(const Arguments& arguments);
void wrapper_constructed(const Arguments& arguments);
/// True if this thread is inside a recorded operation of a process group.
bool c10d_call_is_open();
void message_waited(const Arguments& arguments, bool threw, bool completed);
void reducer_event(Meaning meaning, const Arguments& arguments);

/// Torch's functions that we call; null if the installed torch lacks one.
struct TorchFunctions {
  std::int32_t (*count)(void*, std::int64_t*) = nullptr;
  std::int32_t (*dtype)(void*, std::int32_t*) = nullptr;
  std::int32_t (*dimensions)(void*, std::int64_t*) = nullptr;
  std::int32_t (*sizes)(void*, std::int64_t**) = nullptr;
  std::uint64_t (*sequence)(void*) = nullptr;
  const void* (*group_name)(const void*) = nullptr;
  const void* (*group_name_old)(const void*) = nullptr;  // libstdc++'s old string
  char version[32] = {};
};
const TorchFunctions& torch_functions();

}  // namespace ddpdoctor::agent

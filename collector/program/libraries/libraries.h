// SPDX-License-Identifier: Apache-2.0
// Facts about calls and attributes of libraries, one row each: where a value comes from, which
// collectives a call makes, what a library calls back. A row has the name under which the library
// defines or exports the object, never a user's alias.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace ddpdoctor::program {

/// Where a value comes from, in order of strength: if two sources are combined, the later one
/// decides.
enum class Source : std::uint8_t {
  kUniform,      // literals, the size of the job, its command line: the same on every rank
  kEnvironment,  // an environment variable that does not hold the rank
  kUnknown,
  kLength,     // the amount of the rank's data
  kData,       // what the rank computes from its data
  kQueue,      // what has arrived in the rank's queue
  kException,  // whether something failed
  kCache,      // what the rank's cache contains
  kFiles,      // what the rank's file system contains
  kRandom,
  kClock,
  kSignal,  // whether the rank received a signal
  kRank,
};

/// "the rank", "its clock": the words after "depends on".
std::string_view name_of(Source source);

/// The value may differ on each rank: data, clock, files, random numbers, failures.
bool is_own(Source source);

/// A call or an attribute whose value has a known source.
struct SourceRow {
  std::string_view module;  // package or module: "torch.distributed"
  std::string_view owner;   // class that defines it; empty: a function of the module
  std::string_view name;
  Source source = Source::kUnknown;
  bool number = false;  // the value is the rank's number itself, not computed from it
  // No other well-known library and no part of Python has an attribute of this name, so the name
  // identifies it even if the class of the object is unknown.
  bool alone = false;
};

/// By the qualified name of a function or variable: "torch.distributed.get_rank". nullptr = no row.
const SourceRow* source_of_name(std::string_view qualified);
/// By the qualified name of a class and its attribute: ("accelerate.Accelerator", "process_index").
const SourceRow* source_of_member(std::string_view qualified_class, std::string_view attribute);
/// By the attribute's name alone; considers only rows with `alone`.
const SourceRow* source_of_attribute(std::string_view attribute);
/// Environment variables in which launchers pass the rank.
bool is_rank_variable(std::string_view name);

/// An argument that a library passes to a function that it calls back.
struct HookRow {
  std::string_view module;
  std::string_view owner;  // the class that users subclass
  std::string_view method;
  int argument = 0;  // from 0, without self
  Source source = Source::kUnknown;
};

std::span<const HookRow> hooks();

/// A call that runs the user's function: `mp.spawn(main, args=(…), nprocs=n)`.
struct RunsRow {
  std::string_view module;
  std::string_view name;
  std::string_view function;  // the keyword that names it
  int position = 0;  // position of the function if it can be passed by position; -1 = keyword only
  bool rank_first = false;  // its first argument is the number of the rank
};

const RunsRow* runs_function(std::string_view qualified);

/// A call that registers the user's function for an event: `signal.signal(SIGTERM, stop)`.
struct HandlerRow {
  std::string_view module;
  std::string_view name;
  std::size_t position = 0;  // of the function
  Source source = Source::kUnknown;
  bool alone = false;  // as in SourceRow
};

/// By the call's qualified name; for rows with `alone`, also by the attribute's name.
const HandlerRow* handler_of(std::string_view qualified);
const HandlerRow* handler_of_attribute(std::string_view attribute);

/// A call whose elements come in an order that each process chooses.
struct OrderRow {
  std::string_view module;
  std::string_view name;
  bool is_random = false;  // true: a random order; false: the order of the file system
};

const OrderRow* order_of_name(std::string_view qualified);

/// How a library's call interacts with the other ranks.
enum class CallDoes : std::uint8_t {
  kCollective,        // makes a collective itself
  kUnshards,          // gathers its sharded parameters, whichever line of the user runs it
  kAgrees,            // makes a collective, and its result (or argument) is then equal on all ranks
  kLoops,             // iterates over the rank's own batches and calls user code
  kShields,           // takes part in collectives for ranks that have no batches left
  kHoldsGradients,    // a context in which backward does not reduce gradients
  kFreesOfGradients,  // a context in which no gradient is computed
  // A context that the main process leaves before the others enter it: a barrier on both sides.
  kLetsMainFirst,
};

/// The line that calls it makes a collective.
constexpr bool makes_collective(CallDoes does) {
  return does == CallDoes::kCollective || does == CallDoes::kAgrees ||
         does == CallDoes::kLetsMainFirst;
}

struct CallRow {
  std::string_view module;
  std::string_view owner;
  std::string_view name;
  CallDoes does = CallDoes::kCollective;
  // The first collective it makes: "all_reduce"; empty: it depends on the arguments.
  std::string_view collective;
};

/// All rows.
std::span<const CallRow> calls();
const CallRow* call_of_name(std::string_view qualified);
const CallRow* call_of_member(std::string_view qualified_class, std::string_view method);
/// By the method's name alone; only if exactly one row and no part of Python has it.
const CallRow* call_of_attribute(std::string_view method);
/// The same for the expression of a `with` or the call that makes a context, including a class
/// name: nearly everything used there is a context.
const CallRow* call_of_context(std::string_view name);

/// By the name of the method or function alone: "main_process_first".
bool lets_main_first(std::string_view name);

/// torch's DistributedDataParallel, by the qualified name of the class.
bool is_ddp(std::string_view qualified);
/// A class of torch whose instances have buffers, which DDP's forward broadcasts.
bool has_buffers(std::string_view qualified);
/// A method or function with this name calls broadcast itself; DDP's forward does not count.
bool broadcasts(std::string_view name);

/// A method or function with this name gathers itself; a forward does not count.
bool gathers(std::string_view name);
/// Some library makes this collective by itself to gather sharded parameters.
bool unshards_by(std::string_view collective);

/// A library file that calls a given function a number of times that depends on its results:
/// optimizers with a line search, scipy's optimizers, retry helpers.
bool calls_back_as_often_as_it_likes(std::string_view file);

/// Decorators and wrappers that run a function only on some ranks.
bool lets_ranks_in(std::string_view qualified);
bool lets_ranks_in_by_attribute(std::string_view attribute);

/// What a trainer does after a step if the user's code asked for it.
enum class TrainerTask : std::uint8_t { kEnd, kEvaluation, kSave };

/// What the user's code asks a trainer for when it sets this attribute.
std::optional<TrainerTask> asked_of_trainer(std::string_view attribute);

/// A decorator that keeps the results of a function in each process: a call with arguments that it
/// has seen does not run the function.
bool keeps_results(std::string_view qualified);

/// The role of a method of Python's logging, by its name; users subclass its classes and choose the
/// names of their loggers.
enum class LogCall : std::uint8_t {
  kOther,
  kWrites,  // a logger method that creates a record
  kSets,    // sets which records pass, or where they go
  kHook,    // a method of a handler, filter or formatter, called for records that pass
};
LogCall log_call(std::string_view method);

/// True when `qualified` is `module` + "." + …: "torch.distributed.c10d.get_rank" is in
/// "torch.distributed".
bool lies_in(std::string_view qualified, std::string_view module);

}  // namespace ddpdoctor::program

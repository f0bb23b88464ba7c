// SPDX-License-Identifier: Apache-2.0
// What calls and attributes of libraries are, one row each: where a value comes from, which
// collectives a call makes, what a library calls back. Rows name the thing as it is defined or
// exported, never what a user calls it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace ddpdoctor::program {

/// Where a value comes from; the order is that of strength: of two, the later decides.
enum class Source : std::uint8_t {
  kUniform,      // literals, the size of the job, its command line: one value on every rank
  kEnvironment,  // an environment variable that names no rank
  kUnknown,
  kLength,     // how much data the rank has
  kData,       // what the rank computes from its own data
  kQueue,      // what has come to a queue of its own
  kException,  // whether something failed
  kCache,      // what a cache of its own holds
  kFiles,      // what its file system says
  kRandom,
  kClock,
  kSignal,  // whether a signal has reached it
  kRank,
};

/// "the rank", "its clock": behind "depends on".
std::string_view name_of(Source source);

/// Each rank decides it by itself: its data, clock, files, random numbers, failures.
bool is_own(Source source);

/// A call or an attribute whose value has a known source.
struct SourceRow {
  std::string_view module;  // its package or module: "torch.distributed"
  std::string_view owner;   // the class it belongs to; empty: the module itself
  std::string_view name;
  Source source = Source::kUnknown;
  bool number = false;  // it is the number of the rank, not something computed from it
  // No other well-known library and no part of Python has an attribute of this name: it says what
  // it is also where the class of its object is not known.
  bool alone = false;
};

/// By the qualified name of a function or variable: "torch.distributed.get_rank". nullptr: no row.
const SourceRow* source_of_name(std::string_view qualified);
/// By the qualified name of a class and its attribute: ("accelerate.Accelerator", "process_index").
const SourceRow* source_of_member(std::string_view qualified_class, std::string_view attribute);
/// By the name of the attribute alone; only rows that are `alone`.
const SourceRow* source_of_attribute(std::string_view attribute);
/// Variables of the environment in which a launcher tells the rank.
bool is_rank_variable(std::string_view name);

/// What a library passes to a function that it calls back.
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
  int position = 0;           // of the function, where it is passed by position; -1: never
  bool rank_first = false;    // its first argument is the number of the rank
};

const RunsRow* runs_function(std::string_view qualified);

/// A call that has the user's function run when something happens: `signal.signal(SIGTERM, stop)`.
struct HandlerRow {
  std::string_view module;
  std::string_view name;
  std::size_t position = 0;  // of the function
  Source source = Source::kUnknown;
  bool alone = false;  // as in SourceRow
};

/// By the call's qualified name, else (only rows that are `alone`) by the name of the attribute.
const HandlerRow* handler_of(std::string_view qualified);
const HandlerRow* handler_of_attribute(std::string_view attribute);

/// A call that gives its elements in an order of the process's own.
struct OrderRow {
  std::string_view module;
  std::string_view name;
  bool is_random = false;  // drawn; else as the file system has them
};

const OrderRow* order_of_name(std::string_view qualified);

/// What a library's call does with the other ranks.
enum class CallDoes : std::uint8_t {
  kCollective,        // makes one of these itself
  kAgrees,            // and what it returns, or leaves in its argument, is alike on all ranks
  kLoops,             // goes over the rank's own batches and calls the user back
  kShields,           // takes part for ranks that are through with theirs
  kHoldsGradients,    // a context in which backward reduces nothing
  kFreesOfGradients,  // a context in which no gradient is computed
};

struct CallRow {
  std::string_view module;
  std::string_view owner;
  std::string_view name;
  CallDoes does = CallDoes::kCollective;
  std::string_view collective;  // the first that it makes: "all_reduce"; empty: it depends
};

/// All of them.
std::span<const CallRow> calls();
const CallRow* call_of_name(std::string_view qualified);
const CallRow* call_of_member(std::string_view qualified_class, std::string_view method);
/// By the method's name alone, where only one row has it and no part of Python does.
const CallRow* call_of_attribute(std::string_view method);
/// The same of what a `with` enters or a context is made by, a class's own name included: few
/// things but these are contexts.
const CallRow* call_of_context(std::string_view name);

/// torch's DistributedDataParallel, by the qualified name of the class.
bool is_ddp(std::string_view qualified);
/// A method or function of this name broadcasts by itself, not as DDP's forward does.
bool broadcasts(std::string_view name);

/// A method or function of this name gathers by itself, not as a forward does.
bool gathers(std::string_view name);

/// A file of a library that calls the function it was given as often as it decides by what that
/// returns: an optimizer with a line search, scipy's, what tries again.
bool calls_back_as_often_as_it_likes(std::string_view file);

/// Decorators and wrappers that let some ranks only into a function.
bool lets_ranks_in(std::string_view qualified);
bool lets_ranks_in_by_attribute(std::string_view attribute);

/// What a method of Python's logging does, by its name; users subclass its classes and name their
/// loggers as they like.
enum class LogCall : std::uint8_t {
  kOther,
  kWrites,  // a logger's: makes a record
  kSets,    // says which records get through, or to whom
  kHook,    // a handler's, filter's or formatter's: called for records that get through
};
LogCall log_call(std::string_view method);

/// `qualified` is `module` + "." + …: "torch.distributed.c10d.get_rank" lies in
/// "torch.distributed".
bool lies_in(std::string_view qualified, std::string_view module);

}  // namespace ddpdoctor::program

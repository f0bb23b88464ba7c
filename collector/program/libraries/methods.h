// SPDX-License-Identifier: Apache-2.0
// What methods of library objects do for other threads, ranks and files, one row per class and
// method. A class has one name here ("Queue"), whichever module or function constructs it.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace ddpdoctor::program {

/// Effects of a method; a row may have several.
enum class MethodDoes : std::uint8_t {
  kNothing = 0,
  kTakesWork = 1U << 0U,    // waits for a piece of work and takes it
  kReadsOn = 1U << 1U,      // returns the next part of data that ends
  kWakes = 1U << 2U,        // continues threads that wait for the object
  kSetsKey = 1U << 3U,      // sets a key of a store
  kAsksForFile = 1U << 4U,  // checks, opens or creates a path of the file system
  kDropsKey = 1U << 5U,     // removes a key from a store
  kSetsKeyAndWakes = kSetsKey | kWakes,
  kTakesAndReads = kTakesWork | kReadsOn,
};

struct MethodRow {
  std::string_view owner;  // class; for a function, its module ("os.path", "builtins")
  std::string_view name;
  MethodDoes does = MethodDoes::kNothing;
  std::string_view ends{};  // methods of the same object whose wait it ends: "wait wait_for"
};

/// Whether the row has this effect.
bool does(const MethodRow& row, MethodDoes effect);
/// Whether the method ends a wait in `waiting` on the same object.
bool ends_wait(const MethodRow& row, std::string_view waiting);

/// All rows.
std::span<const MethodRow> methods();
/// Some class, or module, has a row for a method of this name.
bool is_listed(std::string_view method);
/// nullptr = no row: the method does nothing of this kind.
const MethodRow* method_of_class(std::string_view owner, std::string_view method);
/// By the function's qualified name: "os.path.exists". nullptr = no row.
const MethodRow* effect_of_function(std::string_view qualified);

/// A class, or a call that returns its objects.
struct ClassRow {
  std::string_view module;
  std::string_view name;   // of the class or function: "Queue", "submit"
  std::string_view owner;  // the name of the class in the rows above: "Queue", "Future"
  int parts = 0;  // the call returns a tuple; its first `parts` items are such objects. 0: no tuple
};

/// By the qualified name of what is called: "multiprocessing.get_context.Queue". nullptr = unknown.
const ClassRow* class_made_by(std::string_view qualified);

}  // namespace ddpdoctor::program

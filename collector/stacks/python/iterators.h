// SPDX-License-Identifier: Apache-2.0
// The iterables of the `for` loops in a running frame. The iterator of each loop is at the bottom
// of the frame's value stack, outermost first, with the exit methods of `with` blocks between them.
// A running frame does not record the depth of that stack: slots are read only as long as they hold
// iterators. Layouts of iterators: Objects/{rangeobject,iterobject, enumobject}.c,
// Python/bltinmodule.c, Modules/itertoolsmodule.c of CPython 3.8 to 3.14.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collector/stacks/python/objects.h"
#include "collector/stacks/stack.h"

namespace ddpdoctor::stacks {

inline constexpr int kMostIteratorsRead = 64;  // by one question
inline constexpr int kDeepestIterator = 6;     // nesting depth of iterators

/// Reads iterators of one interpreter without running them; unknown kinds have no counts.
class IterationReader {
 public:
  /// `objects` must outlive this.
  explicit IterationReader(PythonObjects& objects) : objects_(objects) {}

  /// The current loops of the frame at this address, outermost first; empty if another function
  /// uses the memory now.
  std::vector<Iteration> loops_of(RemoteAddress frame, RemoteAddress code);
  /// Generators that its loops draw from, also through enumerate, zip, map, islice, a DataLoader
  /// and other generators, outermost loop first; then those that are the contexts of its `with`
  /// blocks.
  std::vector<RemoteAddress> generators_of(RemoteAddress frame, RemoteAddress code);

 private:
  /// In drawn_from.cc.
  void add_generators(RemoteAddress iterator, int depth, std::vector<RemoteAddress>& out);
  /// The iterators of a frame's loops and the exit methods of its `with` blocks, outermost first.
  struct Blocks {
    std::vector<RemoteAddress> iterators;
    std::vector<RemoteAddress> exits;
  };
  Blocks blocks_at(RemoteAddress frame, RemoteAddress code);
  RemoteAddress code_of(RemoteAddress frame);
  /// By current data, not by the cached frame.
  bool still_runs(RemoteAddress frame, RemoteAddress code);
  Iteration read(RemoteAddress iterator, int depth);
  std::vector<Iteration> loops_at(RemoteAddress frame, RemoteAddress code, int depth);
  Iteration read_range(RemoteAddress iterator);
  Iteration read_sequence(RemoteAddress iterator, std::string_view kind);
  Iteration read_table(RemoteAddress iterator, std::string_view kind, int left_at);
  Iteration read_shortest(RemoteAddress tuple, std::string_view kind, int depth);
  Iteration read_slice(RemoteAddress iterator, int depth);
  Iteration read_generator(RemoteAddress generator, int depth);
  /// At most kMostListed strings and numbers in Python's spelling; empty if there is anything else.
  std::vector<std::string> names_in(RemoteAddress container);
  Iteration read_enumerate(RemoteAddress iterator, int depth);
  /// In data_loader.cc.
  Iteration read_data_loader(RemoteAddress iterator, int depth);
  std::optional<std::int64_t> batches_left(RemoteAddress iterator, int depth);
  std::optional<std::int64_t> samples_left(RemoteAddress batches, RemoteAddress sampler,
                                           std::int64_t drawn, int depth);
  std::optional<std::int64_t> integer(RemoteAddress object, std::string_view attribute);
  std::string own_type(RemoteAddress object);

  RemoteAddress field(RemoteAddress object, int index);
  std::optional<std::int64_t> number(RemoteAddress object, int index);
  RemoteAddress local(RemoteAddress frame, RemoteAddress code, std::string_view name);
  std::string text_of_code(RemoteAddress code, std::int64_t offset);
  bool is_iterator(RemoteAddress object);

  PythonObjects& objects_;
  int budget_ = 0;  // remaining number of iterators to read, because memory may show a cycle
};

}  // namespace ddpdoctor::stacks

// SPDX-License-Identifier: Apache-2.0
// What the `for` loops of a running frame go over. The iterator of each loop lies at the bottom of
// the frame's value stack, outermost first, with the exit methods of `with` blocks between them.
// The depth of that stack is not written down while a frame runs: what lies in the slots is
// believed only as long as it is an iterator. Layouts of iterators:
// Objects/{rangeobject,iterobject, enumobject}.c, Python/bltinmodule.c, Modules/itertoolsmodule.c
// of CPython 3.8 to 3.14.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collector/stacks/python/objects.h"
#include "collector/stacks/stack.h"

namespace ddpdoctor::stacks {

/// Reads iterators of one interpreter without running them; what it does not know has no counts.
class IterationReader {
 public:
  /// Must outlive this.
  explicit IterationReader(PythonObjects& objects) : objects_(objects) {}

  /// The loops that the frame at this address is in, outermost first; empty when another function
  /// has taken its place meanwhile.
  std::vector<Iteration> loops_of(RemoteAddress frame, RemoteAddress code);

 private:
  Iteration read(RemoteAddress iterator, int depth);
  std::vector<Iteration> loops_at(RemoteAddress frame, RemoteAddress code, int depth);
  Iteration read_range(RemoteAddress iterator);
  Iteration read_sequence(RemoteAddress iterator, std::string_view kind);
  Iteration read_table(RemoteAddress iterator, std::string_view kind, int left_at);
  Iteration read_shortest(RemoteAddress tuple, std::string_view kind, int depth);
  Iteration read_slice(RemoteAddress iterator, int depth);
  Iteration read_generator(RemoteAddress generator, int depth);
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
  int budget_ = 0;  // iterators that may still be read: memory may show a circle of them
};

}  // namespace ddpdoctor::stacks

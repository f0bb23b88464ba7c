// SPDX-License-Identifier: Apache-2.0
// What each operation does with the data of the group's members.
#pragma once

#include <string_view>

namespace ddpdoctor::model {

/// By PyTorch's names, MPI's nonblocking variants ("i" + name) included. An unknown operation has
/// no property, so nothing of it is compared except its name.
struct OperationKind {
  bool one_input_size = false;  // every member passes an input of the same size
  bool keeps_size = false;      // input and output have the same size
  bool reduces = false;         // has a reduce operation
  bool has_root = false;
  bool gathers = false;             // the output has the inputs of all members
  bool scatters = false;            // each member gets its part of the input
  bool exchanges = false;           // all_to_all: each member has a part for each other one
  bool makes_communicator = false;  // also the end of one
};

/// The properties of an operation by its name.
OperationKind kind_of(std::string_view operation);

}  // namespace ddpdoctor::model

// SPDX-License-Identifier: Apache-2.0
// Where torch keeps what we read: byte offsets per release. Data only;
// tests/support/generate_torch_layout.cc writes the rows from torch's own headers.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ddpdoctor::stacks {

/// Offsets in one release of torch, libstdc++ with the C++11 ABI. npos = the release has no
/// such member.
struct TorchLayout {
  static constexpr std::size_t npos = static_cast<std::size_t>(-1);

  std::string_view version;  // "2.13.0", without the local part

  // c10d::FlightRecorder<Event>
  std::size_t enabled;
  std::size_t entries;  // std::vector<Entry>
  std::size_t max_entries;
  std::size_t next;     // the slot written next
  std::size_t next_id;  // the id given next
  std::size_t epoch;    // bumped by a reset, which keeps the entries; npos before 2.10
  std::size_t recorder_size;

  // c10d::FlightRecorder<Event>::Entry
  std::size_t entry_size;
  std::size_t id;
  std::size_t group_id;
  std::size_t entry_epoch;
  std::size_t group_name;         // std::string
  std::size_t group_description;  // std::string
  std::size_t collective_sequence;
  std::size_t p2p_sequence;
  std::size_t operation_id;
  std::size_t operation;  // std::string
  std::size_t traceback;  // shared_ptr<CapturedTraceback>: the pointer comes first
  std::size_t created;    // wall clock, ns
  std::size_t point_to_point;
  std::size_t started_set;    // engaged flag of the optional time
  std::size_t completed_set;  // engaged flag of the optional time
  std::size_t input_dims;     // c10::SmallVector<int64_t>: dimensions of each tensor
  std::size_t input_dtypes;   // std::vector<c10::ScalarType>
  std::size_t output_dims;
  std::size_t output_dtypes;
  std::size_t sizes;  // c10::SmallVector<int64_t>: inputs, then outputs, flattened
  std::size_t retired;

  // torch::CapturedTraceback and its PyFrame
  std::size_t python_frames;  // std::vector<PyFrame>
  std::size_t python_frame_size;
  std::size_t python_frame_code;
  std::size_t python_frame_lasti;  // int, in bytes (PyFrame_GetLasti)

  std::size_t
      variable;       // at::Tensor in THPVariable, counted from the end of the Python object header
  std::size_t shape;  // c10::TensorImpl: size_t dimensions, then five inline sizes or a pointer
  std::size_t count;  // c10::TensorImpl: elements
  std::size_t dtype;  // c10::TensorImpl: uint16_t index of the type
  std::size_t reduce_op;   // c10d::ReduceOp: the enumerator
  std::size_t group_rank;  // c10d::ProcessGroup: int
  std::size_t group_size;
  std::size_t group_text;    // c10d::ProcessGroup: std::string, the description
  std::size_t scalar_types;  // c10::ScalarType::NumOptions

  bool operator==(const TorchLayout&) const = default;
};

/// What a process may look like inside. A local, vendor or patch release ("2.9.0a0+nv25.10") has no
/// row and most often the layout of one: each is tried, and what lies there decides.
struct TorchLayouts {
  const TorchLayout* exact = nullptr;      // by the version
  std::vector<const TorchLayout*> others;  // different ones, newest first

  [[nodiscard]] const TorchLayout* likely() const {
    return exact != nullptr || others.empty() ? exact : others.front();
  }
};

/// The row of a release as torch.__version__ names it ("2.13.0+cpu"); null when no row was
/// generated from its headers.
const TorchLayout* torch_layout(std::string_view version);

/// That row, and the layouts to try where it does not fit or there is none.
TorchLayouts torch_layouts(std::string_view version);

/// True when both lay out the flight recorder alike.
bool same_recorder(const TorchLayout& one, const TorchLayout& other);

/// "float32" for a c10::ScalarType; nothing for numbers we have no name for.
std::optional<std::string> dtype_name(std::size_t scalar_type);

}  // namespace ddpdoctor::stacks

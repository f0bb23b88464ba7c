// SPDX-License-Identifier: Apache-2.0
// Layouts of torch's structures that we read: byte offsets per release. Data only;
// tests/support/generate_torch_layout.cc generates the rows from torch's headers.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ddpdoctor::stacks {

/// Offsets in one release of torch with libstdc++'s C++11 ABI. npos = the release has no such
/// member.
struct TorchLayout {
  static constexpr std::size_t npos = static_cast<std::size_t>(-1);

  std::string_view version;  // "2.13.0", without the local part

  // c10d::FlightRecorder<Event>
  std::size_t enabled;
  std::size_t entries;  // std::vector<Entry>
  std::size_t max_entries;
  std::size_t next;     // the slot written next
  std::size_t next_id;  // the id given next
  std::size_t epoch;    // incremented by a reset, which keeps the entries; npos before 2.10
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

/// The possible layouts of a process. A local, vendor or patch release ("2.9.0a0+nv25.10") has no
/// row but usually the layout of another: each is tried, and the memory's content decides.
struct TorchLayouts {
  const TorchLayout* exact = nullptr;      // by version
  std::vector<const TorchLayout*> others;  // all different ones, newest first

  [[nodiscard]] const TorchLayout* likely() const {
    return exact != nullptr || others.empty() ? exact : others.front();
  }
};

/// The row of a release by its torch.__version__ ("2.13.0+cpu"); null if no row was generated for
/// it.
const TorchLayout* torch_layout(std::string_view version);

/// That row, and the layouts to try if it does not match or is missing.
TorchLayouts torch_layouts(std::string_view version);

/// True if both have the same layout of the flight recorder.
bool same_recorder(const TorchLayout& one, const TorchLayout& other);

/// "float32" for a c10::ScalarType; nothing for unknown numbers.
std::optional<std::string> dtype_name(std::size_t scalar_type);

}  // namespace ddpdoctor::stacks

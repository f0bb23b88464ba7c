// SPDX-License-Identifier: Apache-2.0
// Writes one row of collector/stacks/torch/layouts.cc from the headers of an installed or unpacked
// torch. Not part of the build: run it by hand for a new torch, then paste the row. The row is text
// in a section of the object file, so nothing is linked or run, and the headers of a wheel for
// another machine can be used.
//
//   P=$(python3 -c 'import sysconfig;print(sysconfig.get_paths()["include"])')      # any CPython
//   g++ -std=c++20 -w -fno-access-control -I$TORCH/include -I$TORCH/include/torch/csrc/api/include
//   -I$P
//       -DTORCH_RELEASE='"2.13.0"' -c tests/support/generate_torch_layout.cc -o layout.o
//   objcopy -O binary -j .layout_row --set-section-flags .layout_row=alloc layout.o row.txt
//
// Private members are accessed with -fno-access-control, which changes no layout.
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <c10/core/TensorImpl.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/distributed/c10d/FlightRecorder.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/Types.hpp>
#include <torch/csrc/profiler/combined_traceback.h>

namespace {

using Recorder = c10d::FlightRecorder<c10::Event>;
using Entry = Recorder::Entry;
using Traceback = torch::CapturedTraceback;

struct Field {
  std::string_view name;
  std::int64_t value;
};

// libstdc++ stores a tuple's members last to first, so the group's description is before its name.
constexpr std::int64_t kSecondThenFirst = sizeof(std::string);

template <typename T>
constexpr std::int64_t reset_epoch() {
  if constexpr (requires(T entry) { entry.reset_epoch_; }) {
    return __builtin_offsetof(T, reset_epoch_);
  } else {
    return -1;
  }
}

/// In the order of the fields of TorchLayout.
constexpr Field kFields[] = {
    {"enabled", __builtin_offsetof(Recorder, enabled_)},
    {"entries", __builtin_offsetof(Recorder, entries_)},
    {"max_entries", __builtin_offsetof(Recorder, max_entries_)},
    {"next", __builtin_offsetof(Recorder, next_)},
    {"next_id", __builtin_offsetof(Recorder, id_)},
    {"epoch", reset_epoch<Recorder>()},
    {"recorder_size", sizeof(Recorder)},
    {"entry_size", sizeof(Entry)},
    {"id", __builtin_offsetof(Entry, id_)},
    {"group_id", __builtin_offsetof(Entry, pg_id_)},
    {"entry_epoch", reset_epoch<Entry>()},
    {"group_name", __builtin_offsetof(Entry, pg_name_) + kSecondThenFirst},
    {"group_description", __builtin_offsetof(Entry, pg_name_)},
    {"collective_sequence", __builtin_offsetof(Entry, collective_seq_id_)},
    {"p2p_sequence", __builtin_offsetof(Entry, p2p_seq_id_)},
    {"operation_id", __builtin_offsetof(Entry, op_id_)},
    {"operation", __builtin_offsetof(Entry, profiling_name_)},
    {"traceback", __builtin_offsetof(Entry, traceback_)},
    {"created", __builtin_offsetof(Entry, time_created_)},
    {"point_to_point", __builtin_offsetof(Entry, isP2P_)},
    {"started_set", __builtin_offsetof(Entry, time_discovered_started_) + sizeof(c10::time_t)},
    {"completed_set", __builtin_offsetof(Entry, time_discovered_completed_) + sizeof(c10::time_t)},
    {"input_dims", __builtin_offsetof(Entry, input_dims_)},
    {"input_dtypes", __builtin_offsetof(Entry, input_dtypes_)},
    {"output_dims", __builtin_offsetof(Entry, output_dims_)},
    {"output_dtypes", __builtin_offsetof(Entry, output_dtypes_)},
    {"sizes", __builtin_offsetof(Entry, sizes_)},
    {"retired", __builtin_offsetof(Entry, retired_)},
    {"python_frames", __builtin_offsetof(Traceback, frames_)},
    {"python_frame_size", sizeof(Traceback::PyFrame)},
    {"python_frame_code", __builtin_offsetof(Traceback::PyFrame, code)},
    {"python_frame_lasti", __builtin_offsetof(Traceback::PyFrame, lasti)},
    {"variable", __builtin_offsetof(THPVariable, cdata) - sizeof(PyObject) +
                     (sizeof(decltype(THPVariable::cdata)) - sizeof(at::Tensor))},
    {"shape", __builtin_offsetof(c10::TensorImpl, sizes_and_strides_)},
    {"count", __builtin_offsetof(c10::TensorImpl, numel_)},
    {"dtype", __builtin_offsetof(c10::TensorImpl, data_type_)},
    {"reduce_op", __builtin_offsetof(c10d::ReduceOp, op_)},
    {"group_rank", __builtin_offsetof(c10d::ProcessGroup, rank_)},
    {"group_size", __builtin_offsetof(c10d::ProcessGroup, size_)},
    {"group_text", __builtin_offsetof(c10d::ProcessGroup, pg_desc_)},
    {"scalar_types", static_cast<std::int64_t>(c10::ScalarType::NumOptions)},
};

struct Text {
  std::array<char, 2048> characters{};
  std::size_t length = 0;

  constexpr void add(std::string_view text) {
    for (const char c : text) {
      characters[length++] = c;
    }
  }

  constexpr void add(std::int64_t number) {
    if (number < 0) {
      add("-");
      number = -number;
    }
    if (number >= 10) {
      add(number / 10);
    }
    const char digit = static_cast<char>('0' + number % 10);
    add(std::string_view(&digit, 1));
  }
};

constexpr Text row() {
  Text text;
  text.add("    {.version = \"" TORCH_RELEASE "\"");
  for (const Field& field : kFields) {
    text.add(", .");
    text.add(field.name);
    text.add(" = ");
    text.add(field.value);
  }
  text.add("},\n");
  return text;
}

}  // namespace

extern "C" __attribute__((section(".layout_row"), used)) const std::array<char, 2048> kRow =
    row().characters;

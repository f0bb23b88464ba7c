// SPDX-License-Identifier: Apache-2.0
// The simulated process: how torch's recorder looks in memory.
#include "tests/unit/stacks/torch_image.h"

#include <algorithm>

namespace ddpdoctor::stacks {

bool FakeProcess::read(RemoteAddress address, std::span<std::byte> into) {
  if (before_read) {
    before_read(reads);
  }
  ++reads;
  const std::uint64_t offset = address - kBase;
  if (offset > bytes_.size() || into.size() > bytes_.size() - offset) {
    return false;
  }
  std::memcpy(into.data(), bytes_.data() + offset, into.size());
  return true;
}

RemoteAddress FakeProcess::allocate(std::size_t length) {
  const RemoteAddress address = kBase + bytes_.size();
  bytes_.resize(bytes_.size() + (length + 15) / 16 * 16);
  return address;
}

void FakeProcess::write(RemoteAddress address, std::span<const std::byte> bytes) {
  std::ranges::copy(bytes, bytes_.begin() + static_cast<std::ptrdiff_t>(address - kBase));
}

void FakeProcess::put_string(RemoteAddress address, const std::string& text) {
  constexpr std::size_t kInline = 15;
  const RemoteAddress place = text.size() <= kInline ? address + 16 : allocate(text.size() + 1);
  put(address, place);
  put(address + 8, static_cast<std::uint64_t>(text.size()));
  if (place != address + 16) {
    put(address + 16, static_cast<std::uint64_t>(text.size()));
  }
  write(place, std::as_bytes(std::span(text)));
}

void FakeProcess::put_type(RemoteAddress address, const std::string& name) {
  constexpr RemoteAddress kPointer = 8;
  const RemoteAddress text = allocate(name.size() + 1);
  write(text, std::as_bytes(std::span(name)));
  const RemoteAddress type = allocate(2 * kPointer);
  put(type + kPointer, text);
  const RemoteAddress functions = allocate(4 * kPointer) + 2 * kPointer;
  put(functions - kPointer, type);
  put(address, functions);
}

void FakeProcess::put_vector(RemoteAddress address, std::span<const std::byte> bytes) {
  const RemoteAddress place = bytes.empty() ? 0 : allocate(bytes.size());
  put(address, place);
  put(address + 8, place + bytes.size());
  put(address + 16, place + bytes.size());
  if (!bytes.empty()) {
    write(place, bytes);
  }
}

void FakeProcess::put_small_vector(RemoteAddress address, const std::vector<std::int64_t>& values) {
  constexpr std::size_t kInline = 4;
  const RemoteAddress place = values.size() <= kInline ? address + 16 : allocate(values.size() * 8);
  put(address, place);
  put(address + 8, static_cast<std::uint32_t>(values.size()));
  put(address + 12, static_cast<std::uint32_t>(std::max(values.size(), kInline)));
  write(place, std::as_bytes(std::span(values)));
}

FakeRecorder::FakeRecorder(FakeProcess& process, const TorchLayout& layout,
                           std::uint64_t max_entries)
    : process_(process), layout_(layout), max_entries_(max_entries) {
  recorder_ = process_.allocate(layout_.recorder_size);
  entries_ = process_.allocate(layout_.entry_size * max_entries);
  put_header();
}

RemoteAddress FakeRecorder::slot(std::uint64_t number) const {
  return entries_ + number * layout_.entry_size;
}

void FakeRecorder::put_header() {
  process_.put(recorder_ + layout_.enabled, std::uint8_t{1});
  process_.put(recorder_ + layout_.entries, entries_);
  process_.put(recorder_ + layout_.entries + 8, slot(count_));
  process_.put(recorder_ + layout_.entries + 16, slot(max_entries_));
  process_.put(recorder_ + layout_.max_entries, max_entries_);
  process_.put(recorder_ + layout_.next, next_);
  process_.put(recorder_ + layout_.next_id, next_id_);
  if (layout_.epoch != TorchLayout::npos) {
    process_.put(recorder_ + layout_.epoch, epoch_);
  }
}

void FakeRecorder::put_tensors(RemoteAddress entry, const FlightRecord& record) {
  std::vector<std::int64_t> sizes;
  const auto dims = [&sizes](const std::vector<std::vector<std::int64_t>>& shapes) {
    std::vector<std::int64_t> result;
    for (const auto& shape : shapes) {
      result.push_back(static_cast<std::int64_t>(shape.size()));
      sizes.insert(sizes.end(), shape.begin(), shape.end());
    }
    return result;
  };
  const auto types = [](const std::vector<std::string>& names) {
    std::vector<std::byte> result;
    for (const std::string& name : names) {
      std::size_t number = 0;
      while (dtype_name(number) && *dtype_name(number) != name) {
        ++number;
      }
      result.push_back(static_cast<std::byte>(number));
    }
    return result;
  };
  process_.put_small_vector(entry + layout_.input_dims, dims(record.input_shapes));
  process_.put_small_vector(entry + layout_.output_dims, dims(record.output_shapes));
  process_.put_small_vector(entry + layout_.sizes, sizes);
  process_.put_vector(entry + layout_.input_dtypes, types(record.input_dtypes));
  process_.put_vector(entry + layout_.output_dtypes, types(record.output_dtypes));
}

void FakeRecorder::record(const FlightRecord& record, const std::vector<CodePoint>& calls) {
  const RemoteAddress entry = slot(next_);
  process_.put(entry + layout_.id, next_id_);
  if (layout_.entry_epoch != TorchLayout::npos) {
    process_.put(entry + layout_.entry_epoch, epoch_);
  }
  process_.put(entry + layout_.group_id, record.group_id);
  process_.put_string(entry + layout_.group_name, record.group_name);
  process_.put_string(entry + layout_.group_description, record.group_description);
  process_.put_string(entry + layout_.operation, record.operation);
  process_.put(entry + layout_.collective_sequence, record.point_to_point ? 0 : record.sequence);
  process_.put(entry + layout_.p2p_sequence, record.point_to_point ? record.sequence : 0);
  process_.put(entry + layout_.operation_id, record.operation_id);
  process_.put(entry + layout_.created, record.created_ns);
  process_.put(entry + layout_.point_to_point, static_cast<std::uint8_t>(record.point_to_point));
  process_.put(entry + layout_.started_set, std::uint8_t{0});
  process_.put(entry + layout_.completed_set, std::uint8_t{0});
  process_.put(entry + layout_.retired, static_cast<std::uint8_t>(record.completed));
  put_tensors(entry, record);

  const RemoteAddress traceback = process_.allocate(layout_.python_frames + 24);
  const std::size_t width = layout_.python_frame_size;
  std::vector<std::byte> frames(calls.size() * width);
  for (std::size_t i = 0; i < calls.size(); ++i) {
    std::memcpy(&frames[i * width + layout_.python_frame_code], &calls[i].code, 8);
    std::memcpy(&frames[i * width + layout_.python_frame_lasti], &calls[i].lasti, 4);
  }
  process_.put_vector(traceback + layout_.python_frames, frames);
  process_.put(entry + layout_.traceback, traceback);

  ++next_id_;
  count_ = std::max(count_, next_ + 1);
  next_ = (next_ + 1) % max_entries_;
  put_header();
}

void FakeRecorder::reset() {
  ++epoch_;
  next_id_ = 0;
  put_header();
}

FlightRecord all_reduce(std::int64_t sequence) {
  return {.id = sequence - 1,
          .group_id = 0,
          .group_name = "0",
          .group_description = "default_pg",
          .sequence = sequence,
          .operation_id = sequence,
          .operation = "gloo:all_reduce",
          .input_shapes = {{1000, 7}},
          .output_shapes = {{1000, 7}},
          .input_dtypes = {"float32"},
          .output_dtypes = {"float32"},
          .created_ns = 1'795'000'000'000'000'000,
          .stack = {}};
}

}  // namespace ddpdoctor::stacks

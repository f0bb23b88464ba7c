// SPDX-License-Identifier: Apache-2.0
// One entry of torch's flight recorder.
#include "collector/stacks/torch/recorder_entry.h"

#include <algorithm>
#include <span>

#include <fmt/format.h>

#include "collector/stacks/torch/cpp_objects.h"

namespace ddpdoctor::stacks {
namespace {

constexpr std::size_t kMaxEntryName = 512;       // bytes of a group's name or an operation
constexpr std::size_t kMaxTensors = 1U << 14;    // tensors of one call
constexpr std::size_t kMaxEntryDimensions = 64;  // of one tensor
constexpr std::size_t kMaxSizes = 1U << 16;      // sizes of one call, flattened
constexpr std::size_t kSizesBudget = 1U << 21;   // sizes of all entries together

/// Removes the shapes of `dims.size()` tensors from the front of `sizes`.
std::optional<std::vector<std::vector<std::int64_t>>> take_shapes(
    const std::vector<std::int64_t>& dims, std::span<const std::int64_t>& sizes) {
  std::vector<std::vector<std::int64_t>> shapes;
  shapes.reserve(dims.size());
  for (const std::int64_t dimensions : dims) {
    if (dimensions < 0 || std::cmp_greater(dimensions, kMaxEntryDimensions) ||
        std::cmp_greater(dimensions, sizes.size())) {
      return std::nullopt;
    }
    const auto shape = sizes.first(static_cast<std::size_t>(dimensions));
    shapes.emplace_back(shape.begin(), shape.end());
    sizes = sizes.subspan(shape.size());
  }
  return shapes;
}

}  // namespace

bool EntryReader::preload(RemoteAddress first, std::uint64_t count) {
  return memory_.preload(first, count * layout_.entry_size);
}

std::optional<std::pair<std::uint64_t, std::uint64_t>> EntryReader::identity(RemoteAddress entry) {
  const auto id = memory_.get<std::uint64_t>(entry + layout_.id);
  const auto epoch = layout_.entry_epoch == TorchLayout::npos
                         ? std::optional<std::uint64_t>(0)
                         : memory_.get<std::uint64_t>(entry + layout_.entry_epoch);
  if (!id || !epoch) {
    return std::nullopt;
  }
  return std::pair(*id, *epoch);
}

bool EntryReader::read_names(RemoteAddress entry, FlightRecord& record) {
  auto name = cpp_string(memory_, entry + layout_.group_name, kMaxEntryName);
  auto description = cpp_string(memory_, entry + layout_.group_description, kMaxEntryName);
  auto operation = cpp_string(memory_, entry + layout_.operation, kMaxEntryName);
  if (!name || !description || !operation || operation->empty()) {
    return false;
  }
  record.group_name = std::move(*name);
  record.group_description = std::move(*description);
  record.operation = std::move(*operation);
  return true;
}

bool EntryReader::read_numbers(RemoteAddress entry, FlightRecord& record) {
  const auto group = memory_.get<std::int64_t>(entry + layout_.group_id);
  const auto p2p = memory_.get<std::uint8_t>(entry + layout_.point_to_point);
  const auto collective = memory_.get<std::int64_t>(entry + layout_.collective_sequence);
  const auto pair = memory_.get<std::int64_t>(entry + layout_.p2p_sequence);
  const auto operation = memory_.get<std::int64_t>(entry + layout_.operation_id);
  const auto created = memory_.get<std::int64_t>(entry + layout_.created);
  const auto started = memory_.get<std::uint8_t>(entry + layout_.started_set);
  const auto completed = memory_.get<std::uint8_t>(entry + layout_.completed_set);
  const auto retired = memory_.get<std::uint8_t>(entry + layout_.retired);
  if (!group || !p2p || !collective || !pair || !operation || !created || !started || !completed ||
      !retired) {
    return false;
  }
  if (*p2p > 1 || *started > 1 || *completed > 1 || *retired > 1 || *collective < 0 || *pair < 0 ||
      *operation < 0 || *created < 0) {
    return false;
  }
  record.group_id = *group;
  record.point_to_point = *p2p == 1;
  record.sequence = record.point_to_point ? *pair : *collective;
  record.operation_id = *operation;
  record.created_ns = *created;
  record.completed = *completed == 1 || *retired == 1;
  record.started = *started == 1 || record.completed;
  return true;
}

std::optional<std::vector<std::string>> EntryReader::dtypes(RemoteAddress address,
                                                            std::size_t count) {
  if (!read_vector(memory_, address, 1, kMaxTensors, types_) || types_.size() != count) {
    return std::nullopt;
  }
  std::vector<std::string> names;
  names.reserve(count);
  for (const std::byte type : types_) {
    const auto number = std::to_integer<std::size_t>(type);
    if (number >= layout_.scalar_types) {
      return std::nullopt;
    }
    auto name = dtype_name(number);
    names.push_back(name ? std::move(*name) : fmt::format("dtype {}", number));
  }
  return names;
}

bool EntryReader::read_tensors(RemoteAddress entry, FlightRecord& record) {
  if (!read_small_vector(memory_, entry + layout_.input_dims, kMaxTensors, inputs_) ||
      !read_small_vector(memory_, entry + layout_.output_dims, kMaxTensors, outputs_) ||
      !read_small_vector(memory_, entry + layout_.sizes, kMaxSizes, sizes_) ||
      std::ranges::any_of(sizes_, [](std::int64_t size) { return size < 0; })) {
    return false;
  }
  sizes_read_ += sizes_.size();
  if (sizes_read_ > kSizesBudget) {
    return true;  // shapes are unknown from here on
  }
  std::span<const std::int64_t> left(sizes_);
  auto input_shapes = take_shapes(inputs_, left);
  auto output_shapes = take_shapes(outputs_, left);
  auto input_dtypes = dtypes(entry + layout_.input_dtypes, inputs_.size());
  auto output_dtypes = dtypes(entry + layout_.output_dtypes, outputs_.size());
  if (!input_shapes || !output_shapes || !left.empty() || !input_dtypes || !output_dtypes) {
    return false;
  }
  record.input_shapes = std::move(*input_shapes);
  record.output_shapes = std::move(*output_shapes);
  record.input_dtypes = std::move(*input_dtypes);
  record.output_dtypes = std::move(*output_dtypes);
  return true;
}

std::optional<RecorderEntry> EntryReader::entry(RemoteAddress address) {
  RecorderEntry result;
  const auto id = memory_.get<std::int64_t>(address + layout_.id);
  if (!id || !read_names(address, result.record) || !read_numbers(address, result.record) ||
      !read_tensors(address, result.record)) {
    return std::nullopt;
  }
  result.record.id = *id;
  return result;
}

std::vector<CodePoint> EntryReader::calls(RemoteAddress entry) {
  const auto traceback = memory_.get<RemoteAddress>(entry + layout_.traceback);
  if (!traceback || *traceback == 0) {
    return {};
  }
  // A deep recursion may have more frames than needed: reads the header first, then only the
  // innermost frames.
  const RemoteAddress frames = *traceback + layout_.python_frames;
  const auto begin = memory_.get<RemoteAddress>(frames);
  const auto end = memory_.get<RemoteAddress>(frames + sizeof(RemoteAddress));
  if (!begin || !end || *end < *begin || (*end - *begin) % layout_.python_frame_size != 0) {
    return {};
  }
  const std::uint64_t count =
      std::min<std::uint64_t>((*end - *begin) / layout_.python_frame_size, limits_.frames);
  std::vector<CodePoint> points;
  points.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    const RemoteAddress frame = *begin + i * layout_.python_frame_size;
    const auto code = memory_.get<RemoteAddress>(frame + layout_.python_frame_code);
    const auto lasti = memory_.get<std::int32_t>(frame + layout_.python_frame_lasti);
    if (!code || !lasti || *code == 0) {
      break;
    }
    points.push_back({.code = *code, .lasti = *lasti});
  }
  return points;
}

}  // namespace ddpdoctor::stacks

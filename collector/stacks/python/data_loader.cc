// SPDX-License-Identifier: Apache-2.0
// torch's DataLoader as the iterable of a loop (torch/utils/data/dataloader.py, sampler.py). The
// number of remaining batches is read from the iterator of the sampler, not from its length, so it
// is correct even for a user's own sampler.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "collector/stacks/python/addresses.h"
#include "collector/stacks/python/frames.h"
#include "collector/stacks/python/generators.h"
#include "collector/stacks/python/iterators.h"
#include "collector/stacks/python/reader.h"

namespace ddpdoctor::stacks {

namespace {

constexpr std::int64_t kMostBatches = std::int64_t{1} << 40U;

bool is_count(std::optional<std::int64_t> number) {
  return number && *number >= 0 && *number < kMostBatches;
}

}  // namespace

bool draws_a_batch(const std::vector<PythonFrame>& inner) {
  constexpr std::array<std::string_view, 4> kLibraries = {"/torch/utils/data/", "/tqdm/",
                                                          "/accelerate/", "/lightning/"};
  for (auto one = inner.rbegin(); one != inner.rend(); ++one) {
    const Frame& frame = one->frame;
    const bool library =
        one->raw.shim ||
        std::any_of(kLibraries.begin(), kLibraries.end(), [&frame](std::string_view folder) {
          return frame.file.find(folder) != std::string::npos;
        });
    if (!library) {
      return false;  // it is the body of the loop, or called after the loader has returned
    }
    if (frame.file.find("/torch/utils/data/") != std::string::npos &&
        (frame.function.ends_with("fetch") || frame.function.ends_with("_next_index"))) {
      return true;
    }
  }
  return false;
}

std::optional<std::int64_t> IterationReader::integer(RemoteAddress object,
                                                     std::string_view attribute) {
  const auto value = objects_.attribute(object, attribute);
  return value ? objects_.integer(*value) : std::nullopt;
}

/// The class name without a module: "DistributedSampler".
std::string IterationReader::own_type(RemoteAddress object) {
  const std::string name = objects_.type_name(object);
  return name.substr(name.rfind('.') + 1);
}

/// Samples that the generator of a batch sampler has still to draw.
std::optional<std::int64_t> IterationReader::samples_left(RemoteAddress batches,
                                                          RemoteAddress sampler, std::int64_t drawn,
                                                          int depth) {
  if (generator_is_over(objects_, batches)) {
    return 0;
  }
  const RemoteAddress frame = generator_frame(objects_, batches);
  if (frame == 0) {
    return std::nullopt;
  }
  const PythonLayout& layout = objects_.layout();
  const RemoteAddress code =
      untagged(pointer(objects_.memory(), at(frame, layout.frame_code)), layout.version);
  Iteration samples;
  // Since torch 2.6 a local holds the iterator it draws from; before, it is in a loop over it.
  if (const RemoteAddress iterator = local(frame, code, "sampler_iter"); iterator != 0) {
    samples = read(iterator, depth + 1);
  } else if (auto loops = loops_at(frame, code, depth + 1); !loops.empty()) {
    samples = std::move(loops.back());
  }
  if (samples.left && !samples.loose) {
    return samples.left;
  }
  if (own_type(sampler) != "RandomSampler") {
    return std::nullopt;
  }
  const auto count = integer(sampler, "_num_samples");
  return count && *count >= drawn ? std::optional(*count - drawn) : std::nullopt;
}

/// Batches that the index sampler has still to return; the last one may be short.
std::optional<std::int64_t> IterationReader::batches_left(RemoteAddress iterator, int depth) {
  const auto indices = objects_.attribute(iterator, "_index_sampler");
  const auto drawing = objects_.attribute(iterator, "_sampler_iter");
  const auto automatic = integer(iterator, "_auto_collation");
  const auto kind = integer(iterator, "_dataset_kind");
  if (!indices || !drawing || !automatic || !kind) {
    return std::nullopt;
  }
  constexpr std::int64_t kIterable = 1;
  const auto batch = *automatic != 0 ? integer(*indices, "batch_size") : 1;
  const auto drop_last = *automatic != 0 ? integer(*indices, "drop_last") : 0;
  std::optional<std::int64_t> samples;
  if (*kind == kIterable) {
    const auto fetcher = objects_.attribute(iterator, "_dataset_fetcher");  // absent with workers
    const auto items = fetcher ? objects_.attribute(*fetcher, "dataset_iter") : std::nullopt;
    const Iteration data = items ? read(*items, depth + 1) : Iteration{};
    samples = data.loose ? std::nullopt : data.left;
  } else if (*automatic != 0 && own_type(*indices) == "BatchSampler") {
    const auto sampler = objects_.attribute(*indices, "sampler");
    const auto drawn =
        integer(iterator, own_type(iterator).starts_with("_Multi") ? "_send_idx" : "_num_yielded");
    if (sampler && is_count(drawn) && is_count(batch)) {
      samples = samples_left(*drawing, *sampler, *drawn * *batch, depth);
    }
  } else {  // it draws whole batches
    const Iteration batches = read(*drawing, depth + 1);
    return batches.loose ? std::nullopt : batches.left;
  }
  if (!is_count(samples) || !is_count(batch) || *batch == 0 || !drop_last) {
    return std::nullopt;
  }
  return *drop_last != 0 ? *samples / *batch : (*samples + *batch - 1) / *batch;
}

Iteration IterationReader::read_data_loader(RemoteAddress iterator, int depth) {
  const auto indices = objects_.attribute(iterator, "_index_sampler");
  const auto sampler = indices ? objects_.attribute(*indices, "sampler") : std::nullopt;
  const auto dataset = objects_.attribute(iterator, "_dataset");
  const bool iterable = integer(iterator, "_dataset_kind") == 1;
  Iteration out{.over = "DataLoader"};
  if (iterable && dataset) {
    out.over = fmt::format("DataLoader over {}", own_type(*dataset));
  } else if (sampler || indices) {
    out.over = fmt::format("DataLoader with {}", own_type(sampler.value_or(indices.value_or(0))));
  }
  const auto done = integer(iterator, "_num_yielded");
  if (!is_count(done)) {
    return out;
  }
  out.done = done;
  const auto sent = integer(iterator, "_send_idx");  // workers are ahead
  const auto left = batches_left(iterator, depth);
  if (is_count(left) && (!sent || *sent >= *done)) {
    out.left = *left + (sent ? *sent - *done : 0);
  }
  return out;
}

}  // namespace ddpdoctor::stacks

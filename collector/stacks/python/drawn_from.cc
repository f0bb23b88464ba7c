// SPDX-License-Identifier: Apache-2.0
// Finds the generators that the loops of a frame iterate over, also inside wrappers such as zip,
// and those in which contextlib's contextmanager has suspended the frame's contexts.
#include "collector/stacks/python/generators.h"
#include "collector/stacks/python/iterators.h"

namespace ddpdoctor::stacks {

namespace {

constexpr std::size_t kMostZipped = 8;

}  // namespace

void IterationReader::add_generators(RemoteAddress iterator, int depth,
                                     std::vector<RemoteAddress>& out) {
  const std::string type = objects_.type_name(iterator);
  if (type.empty() || depth > kDeepestIterator || --budget_ < 0) {
    return;
  }
  const auto go_on = [&](RemoteAddress inner) { add_generators(inner, depth + 1, out); };
  if (type == "generator") {
    out.push_back(iterator);
    const RemoteAddress frame = generator_frame(objects_, iterator);
    const RemoteAddress code = frame == 0 ? 0 : code_of(frame);
    for (const RemoteAddress inner :
         code == 0 ? std::vector<RemoteAddress>() : blocks_at(frame, code).iterators) {
      go_on(inner);
    }
  } else if (type == "enumerate") {
    go_on(field(iterator, 1));
  } else if (type == "itertools.islice") {
    go_on(field(iterator, 0));
  } else if (type == "zip" || type == "map") {
    for (const RemoteAddress each :
         objects_.elements(field(iterator, type == "zip" ? 1 : 0), kMostZipped)) {
      go_on(each);
    }
  } else if (type.ends_with("_SingleProcessDataLoaderIter")) {
    const auto fetcher = objects_.attribute(iterator, "_dataset_fetcher");
    const auto items = fetcher ? objects_.attribute(*fetcher, "dataset_iter") : std::nullopt;
    go_on(items.value_or(0));  // set only for an IterableDataset
  }
}

std::vector<RemoteAddress> IterationReader::generators_of(RemoteAddress frame, RemoteAddress code) {
  std::vector<RemoteAddress> out;
  if (code == 0 || code_of(frame) != code) {
    return out;
  }
  budget_ = kMostIteratorsRead;
  const Blocks blocks = blocks_at(frame, code);
  for (const RemoteAddress iterator : blocks.iterators) {
    add_generators(iterator, 0, out);
  }
  for (const RemoteAddress exit : blocks.exits) {
    constexpr int kSelf = 1;  // of a bound method, after its function
    const RemoteAddress context = field(exit, kSelf);
    if (objects_.type_name(context) == "_GeneratorContextManager") {
      add_generators(objects_.attribute(context, "gen").value_or(0), 0, out);
    }
  }
  return out;
}

}  // namespace ddpdoctor::stacks

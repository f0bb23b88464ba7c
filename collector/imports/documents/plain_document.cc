// SPDX-License-Identifier: Apache-2.0
#include "collector/imports/documents/plain_document.h"

#include <algorithm>
#include <utility>

namespace ddpdoctor::imports {

PlainValue PlainValue::of_number(double number) {
  PlainValue out;
  out.kind = Kind::kNumber;
  out.number = number;
  return out;
}

void PlainDocument::clear() {
  root = {};
  cut = false;
  containers_.clear();
  pool_.clear();
  texts_.clear();
}

std::span<const PlainValue> PlainDocument::items(const PlainValue& container) const {
  if (!container.is(PlainValue::Kind::kList) && !container.is(PlainValue::Kind::kDict)) {
    return {};
  }
  const Container& place = containers_[static_cast<std::size_t>(container.whole)];
  return std::span(pool_).subspan(place.begin, place.count);
}

const PlainValue* PlainDocument::find(const PlainValue& dict, std::string_view key) const {
  if (!dict.is(PlainValue::Kind::kDict)) {
    return nullptr;
  }
  const std::span<const PlainValue> all = items(dict);
  for (std::size_t i = all.size() / 2; i-- > 0;) {
    if (all[2 * i].is(PlainValue::Kind::kText) && all[2 * i].as_text() == key) {
      return &all[2 * i + 1];
    }
  }
  return nullptr;
}

PlainValue PlainDocument::make(PlainValue::Kind list_or_dict) {
  PlainValue out;
  out.kind = list_or_dict;
  out.whole = static_cast<std::int64_t>(containers_.size());
  containers_.push_back({});
  return out;
}

void PlainDocument::append(const PlainValue& container, std::span<const PlainValue> more) {
  Container& place = containers_[static_cast<std::size_t>(container.whole)];
  if (place.begin + place.count == pool_.size()) {  // the newest container grows in place
    pool_.insert(pool_.end(), more.begin(), more.end());
    place.count += more.size();
    place.room = place.count;
    return;
  }
  if (place.count + more.size() > place.room) {
    const std::size_t room = place.count == 0 ? more.size() : 2 * (place.count + more.size());
    const std::size_t begin = pool_.size();
    pool_.resize(begin + room);
    std::copy_n(pool_.begin() + static_cast<std::ptrdiff_t>(place.begin), place.count,
                pool_.begin() + static_cast<std::ptrdiff_t>(begin));
    place.begin = begin;
    place.room = room;
  }
  std::copy(more.begin(), more.end(),
            pool_.begin() + static_cast<std::ptrdiff_t>(place.begin + place.count));
  place.count += more.size();
}

PlainValue PlainDocument::keep(std::string text) {
  texts_.push_back(std::move(text));
  return PlainValue::of_text(texts_.back());
}

}  // namespace ddpdoctor::imports

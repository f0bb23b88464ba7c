// SPDX-License-Identifier: Apache-2.0
#include "collector/fleet/packed.h"

#include <cstring>

namespace ddpdoctor::fleet {
namespace {

constexpr unsigned kSeven = 7;
constexpr std::uint64_t kLow = 0x7F;
constexpr std::uint64_t kMore = 0x80;
constexpr std::uint64_t kLongestText = 256;

}  // namespace

void Packer::number(std::uint64_t value) {
  while (value > kLow) {
    bytes_ += static_cast<char>((value & kLow) | kMore);
    value >>= kSeven;
  }
  bytes_ += static_cast<char>(value);
}

void Packer::word(std::uint32_t value) {
  bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void Packer::text(std::string_view text) {
  text = text.substr(0, kLongestText);
  number(text.size());
  bytes_ += text;
}

std::uint64_t Unpacker::number() {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64 && !left_.empty(); shift += kSeven) {
    const auto byte = static_cast<unsigned char>(left_.front());
    left_.remove_prefix(1);
    value |= (byte & kLow) << shift;
    if ((byte & kMore) == 0) {
      return failed_ ? 0 : value;
    }
  }
  failed_ = true;
  left_ = {};
  return 0;
}

std::uint64_t Unpacker::number_up_to(std::uint64_t most) {
  const std::uint64_t value = number();
  failed_ = failed_ || value > most;
  return failed_ ? 0 : value;
}

std::uint32_t Unpacker::word() {
  std::uint32_t value = 0;
  if (failed_ || left_.size() < sizeof value) {
    failed_ = true;
    left_ = {};
    return 0;
  }
  std::memcpy(&value, left_.data(), sizeof value);
  left_.remove_prefix(sizeof value);
  return value;
}

std::string Unpacker::text() {
  const std::uint64_t length = number_up_to(kLongestText);
  if (failed_ || length > left_.size()) {
    failed_ = true;
    left_ = {};
    return {};
  }
  std::string out(left_.substr(0, length));
  left_.remove_prefix(length);
  return out;
}

}  // namespace ddpdoctor::fleet

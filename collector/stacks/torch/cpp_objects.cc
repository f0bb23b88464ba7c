// SPDX-License-Identifier: Apache-2.0
// C++ containers in another process.
#include "collector/stacks/torch/cpp_objects.h"

#include <algorithm>
#include <cstddef>
#include <span>

namespace ddpdoctor::stacks {
namespace {

bool is_text(const std::string& bytes) {
  return std::ranges::none_of(bytes, [](char c) {
    const auto code = static_cast<unsigned char>(c);
    return code < 0x20 || code == 0x7f;
  });
}

}  // namespace

std::optional<std::string> cpp_string(RemoteMemory& memory, RemoteAddress address,
                                      std::size_t limit) {
  struct Header {
    RemoteAddress text;
    std::uint64_t length;
    std::uint64_t capacity;  // or the first bytes of a short text
  };
  constexpr std::uint64_t kLongestInside = 15;
  const auto header = memory.get<Header>(address);
  if (!header || header->length > limit) {
    return std::nullopt;
  }
  const bool inside = header->text == address + offsetof(Header, capacity);
  if (inside ? header->length > kLongestInside
             : header->capacity <= kLongestInside || header->capacity < header->length) {
    return std::nullopt;
  }
  std::string text(header->length, '\0');
  if (!text.empty() && !memory.read(header->text, std::as_writable_bytes(std::span(text)))) {
    return std::nullopt;
  }
  if (!is_text(text)) {
    return std::nullopt;
  }
  return text;
}

std::optional<std::string> cpp_type_name(RemoteMemory& memory, RemoteAddress object) {
  constexpr std::size_t kMostName = 256;
  constexpr RemoteAddress kPointer = sizeof(RemoteAddress);
  const auto functions = memory.get<RemoteAddress>(object);
  const auto type = functions ? memory.get<RemoteAddress>(*functions - kPointer) : std::nullopt;
  const auto name = type ? memory.get<RemoteAddress>(*type + kPointer) : std::nullopt;
  std::string text;
  while (name && text.size() < kMostName) {
    const auto letter = memory.get<char>(*name + text.size());
    if (!letter) {
      return std::nullopt;
    }
    if (*letter == '\0') {
      return is_text(text) && !text.empty() ? std::optional(text) : std::nullopt;
    }
    text.push_back(*letter);
  }
  return std::nullopt;
}

bool read_vector(RemoteMemory& memory, RemoteAddress address, std::size_t element,
                 std::size_t limit, std::vector<std::byte>& into) {
  struct Header {
    RemoteAddress begin;
    RemoteAddress end;
    RemoteAddress capacity;
  };
  const auto header = memory.get<Header>(address);
  if (!header || header->end < header->begin || header->capacity < header->end) {
    return false;
  }
  const std::uint64_t length = header->end - header->begin;
  if (length % element != 0 || length / element > limit) {
    return false;
  }
  into.resize(length);
  return into.empty() || memory.read(header->begin, into);
}

bool read_small_vector(RemoteMemory& memory, RemoteAddress address, std::size_t limit,
                       std::vector<std::int64_t>& into) {
  struct Header {
    RemoteAddress begin;
    std::uint32_t size;
    std::uint32_t capacity;
  };
  const auto header = memory.get<Header>(address);
  if (!header || header->size > header->capacity || header->size > limit) {
    return false;
  }
  into.resize(header->size);
  return into.empty() || memory.read(header->begin, std::as_writable_bytes(std::span(into)));
}

}  // namespace ddpdoctor::stacks

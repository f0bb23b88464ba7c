// SPDX-License-Identifier: Apache-2.0
// C++ containers in another process.
#include "collector/stacks/torch/cpp_objects.h"

#include <algorithm>
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
  };
  const auto header = memory.get<Header>(address);
  if (!header || header->length > limit) {
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

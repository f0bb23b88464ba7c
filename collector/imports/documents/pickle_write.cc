// SPDX-License-Identifier: Apache-2.0
// The instructions are those of Python's pickletools, protocol 2.
#include "collector/imports/documents/pickle_write.h"

#include <limits>

#include "base/text.h"

namespace ddpdoctor::imports {

PickleWriter::PickleWriter() : out_("\x80\x02") {}

void PickleWriter::word(std::uint32_t value) {
  for (unsigned shift = 0; shift < 32; shift += 8) {
    out_.push_back(static_cast<char>((value >> shift) & 0xffU));
  }
}

void PickleWriter::none() {
  out_.push_back('N');
}

void PickleWriter::flag(bool value) {
  out_ += value ? "\x88" : "\x89";
}

void PickleWriter::whole(std::int64_t value) {
  if (value >= std::numeric_limits<std::int32_t>::min() &&
      value <= std::numeric_limits<std::int32_t>::max()) {
    out_.push_back('J');  // BININT
    word(static_cast<std::uint32_t>(value));
    return;
  }
  out_ += "\x8a\x08";  // LONG1 of eight bytes
  const auto bits = static_cast<std::uint64_t>(value);
  word(static_cast<std::uint32_t>(bits));
  word(static_cast<std::uint32_t>(bits >> 32U));
}

void PickleWriter::text(std::string_view value) {
  const std::string shown = base::printable(value);
  const auto [known, added] = known_.try_emplace(shown, static_cast<std::uint32_t>(known_.size()));
  if (!added) {
    out_.push_back('j');  // LONG_BINGET
    word(known->second);
    return;
  }
  out_.push_back('X');  // BINUNICODE
  word(static_cast<std::uint32_t>(shown.size()));
  out_ += shown;
  out_.push_back('r');  // LONG_BINPUT
  word(known->second);
}

void PickleWriter::open_dict() {
  out_ += "}(";
}

void PickleWriter::close_dict() {
  out_.push_back('u');
}

void PickleWriter::open_list() {
  out_ += "](";
}

void PickleWriter::close_list() {
  out_.push_back('e');
}

void PickleWriter::pair() {
  out_.push_back('\x86');
}

std::string PickleWriter::finish() {
  out_.push_back('.');
  return std::move(out_);
}

}  // namespace ddpdoctor::imports

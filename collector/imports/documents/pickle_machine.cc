// SPDX-License-Identifier: Apache-2.0
#include "collector/imports/documents/pickle_machine.h"

#include <algorithm>

#include <fmt/format.h>

namespace ddpdoctor::imports {
namespace {

using Kind = PlainValue::Kind;

}  // namespace

Step PickleMachine::run() {
  while (true) {
    hurry();
    const auto op = in_.byte();
    if (!op) {
      return Step::kCut;
    }
    const Step next = step(*op);
    if (next == Step::kStop) {
      if (stack_.empty()) {
        return refuse("it ends without a value");
      }
      document_.root = stack_.back();
      return next;
    }
    if (next != Step::kGoOn) {
      return next;
    }
    if (document_.values() + stack_.size() > kMostPickledValues) {
      return refuse(fmt::format("it holds more than {} values", kMostPickledValues));
    }
  }
}

void PickleMachine::close() {
  while (!marks_.empty() || stack_.size() > 1) {
    if (marks_.empty()) {  // values that belong to no open container
      const bool item = stack_.size() > 1 && stack_[stack_.size() - 2].is(Kind::kList);
      if (item) {
        const PlainValue list = stack_[stack_.size() - 2];
        document_.append(list, above(stack_.size() - 1));
      }
      stack_.pop_back();
      continue;
    }
    const std::size_t from = marks_.back();
    marks_.pop_back();
    if (from == 0 || from > stack_.size()) {
      stack_.resize(std::min<std::size_t>(stack_.size(), 1));
      continue;
    }
    const PlainValue& below = stack_[from - 1];
    std::size_t whole = stack_.size() - from;
    whole -= below.is(Kind::kDict) ? whole % 2 : 0;
    if (below.is(Kind::kDict) || below.is(Kind::kList)) {
      document_.append(below, above(from).first(whole));
    }
    stack_.resize(from);
  }
  document_.root = stack_.empty() ? PlainValue{} : stack_.front();
}

/// The instructions that dumps consist of; the others follow in the next function.
Step PickleMachine::step(unsigned char op) {
  switch (op) {
    case 'h':
      return recall(in_.little(1));
    case 'q':
      return remember(in_.little(1));
    case 'X':  // BINUNICODE
      return push(in_.sized(4));
    case 'K':
      return push(in_.unsigned_whole(1));
    case 'M':
      return push(in_.unsigned_whole(2));
    case 'J':
      return push(in_.whole(4));
    case 'j':
      return recall(in_.little(4));
    case 'r':
      return remember(in_.little(4));
    case 'N':
      return push(PlainValue{});
    case 0x88:
    case 0x89:
      return push(PlainValue::of_flag(op == 0x88));
    case '(':
      marks_.push_back(stack_.size());
      return Step::kGoOn;
    case '}':
      return push(document_.make(Kind::kDict));
    case ']':
      return push(document_.make(Kind::kList));
    case 0x8a: {  // LONG1
      const auto size = in_.little(1);
      return size ? push(in_.whole(*size)) : Step::kCut;
    }
    case 'u':
    case 'e':
    case 'a':
      return filled(op);
    default:
      return other(op);
  }
}

Step PickleMachine::other(unsigned char op) {
  switch (op) {
    case 0x80:  // PROTO
      return in_.byte() ? Step::kGoOn : Step::kCut;
    case 0x95:  // FRAME
      return in_.little(8) ? Step::kGoOn : Step::kCut;
    case '.':
      return Step::kStop;
    case '0':  // POP
      if (!marks_.empty() && marks_.back() == stack_.size()) {
        marks_.pop_back();
        return Step::kGoOn;
      }
      if (stack_.empty()) {
        return refuse("it takes away what is not there");
      }
      stack_.pop_back();
      return Step::kGoOn;
    case '1': {  // POP_MARK
      const auto from = mark();
      if (!from) {
        return refuse("it closes what is not open");
      }
      stack_.resize(*from);
      marks_.pop_back();
      return Step::kGoOn;
    }
    case '2':  // DUP
      return stack_.empty() ? refuse("it doubles what is not there") : push(stack_.back());
    default:
      return number(op);
  }
}

Step PickleMachine::number(unsigned char op) {
  switch (op) {
    case 'I': {
      const auto line = in_.line();
      if (line && (*line == "00" || *line == "01")) {
        return push(PlainValue::of_flag(*line == "01"));
      }
      return line ? push(whole_of(*line)) : Step::kCut;
    }
    case 'L': {
      const auto line = in_.line();
      return line ? push(whole_of(line->substr(0, line->find('L')))) : Step::kCut;
    }
    case 0x8b: {  // LONG4
      const auto size = in_.little(4);
      return size ? push(in_.whole(*size)) : Step::kCut;
    }
    case 'F': {
      const auto line = in_.line();
      return line ? push(PlainValue::of_number(number_of(*line))) : Step::kCut;
    }
    case 'G': {
      const auto number = in_.big_double();
      return number ? push(PlainValue::of_number(*number)) : Step::kCut;
    }
    default:
      return text(op);
  }
}

Step PickleMachine::text(unsigned char op) {
  switch (op) {
    case 'S':
    case 'V': {
      const auto line = in_.line();
      return line ? push(document_.keep(op == 'S' ? unquoted(*line) : unescaped(*line)))
                  : Step::kCut;
    }
    case 'U':   // SHORT_BINSTRING
    case 'C':   // SHORT_BINBYTES
    case 0x8c:  // SHORT_BINUNICODE
      return push(in_.sized(1));
    case 'T':  // BINSTRING
    case 'B':  // BINBYTES
      return push(in_.sized(4));
    case 0x8d:  // BINUNICODE8
    case 0x8e:  // BINBYTES8
    case 0x96:  // BYTEARRAY8
      return push(in_.sized(8));
    default:
      return container(op);
  }
}

std::optional<std::size_t> PickleMachine::mark() const {
  return marks_.empty() || marks_.back() > stack_.size() ? std::nullopt
                                                         : std::optional(marks_.back());
}

/// Makes a new container of the values from a position on.
Step PickleMachine::gather(Kind kind, std::size_t from, std::size_t marks) {
  if (from > stack_.size() || (kind == Kind::kDict && (stack_.size() - from) % 2 != 0)) {
    return refuse("it gathers values that are not there");
  }
  const PlainValue made = document_.make(kind);
  document_.append(made, above(from));
  stack_.resize(from);
  marks_.resize(marks_.size() - marks);
  return push(made);
}

/// Moves the values from a position on into the container below them.
Step PickleMachine::fill(Kind kind, std::size_t from, std::size_t marks) {
  if (from == 0 || from > stack_.size() || !stack_[from - 1].is(kind) ||
      (kind == Kind::kDict && (stack_.size() - from) % 2 != 0)) {
    return refuse("it adds to a value that is not a container");
  }
  document_.append(stack_[from - 1], above(from));
  stack_.resize(from);
  marks_.resize(marks_.size() - marks);
  return Step::kGoOn;
}

Step PickleMachine::container(unsigned char op) {
  switch (op) {
    case ')':
    case 0x8f:  // EMPTY_SET
      return push(document_.make(Kind::kList));
    case 0x85:  // TUPLE1
    case 0x86:
    case 0x87: {
      const std::size_t count = op - 0x84U;
      return stack_.size() < count ? refuse("it gathers values that are not there")
                                   : gather(Kind::kList, stack_.size() - count, 0);
    }
    default:
      return filled(op);
  }
}

Step PickleMachine::filled(unsigned char op) {
  switch (op) {
    case 'a':
    case 's': {
      const std::size_t count = op == 'a' ? 1 : 2;
      if (stack_.size() <= count) {
        return refuse("it adds to what is not there");
      }
      return fill(op == 'a' ? Kind::kList : Kind::kDict, stack_.size() - count, 0);
    }
    case 'l':
    case 't':
    case 'd':
    case 'e':
    case 'u':
    case 0x90:    // ADDITEMS
    case 0x91: {  // FROZENSET
      const auto from = mark();
      if (!from) {
        return refuse("it closes what is not open");
      }
      const Kind kind = op == 'd' || op == 'u' ? Kind::kDict : Kind::kList;
      const bool adds = op == 'e' || op == 'u' || op == 0x90;
      return adds ? fill(kind, *from, 1) : gather(kind, *from, 1);
    }
    default:
      return memo(op);
  }
}

Step PickleMachine::remember(std::optional<std::uint64_t> index) {
  if (!index) {
    return Step::kCut;
  }
  if (stack_.empty() || *index > in_.size()) {
    return refuse("it remembers what is not there");
  }
  if (*index >= memo_.size()) {
    memo_.resize(std::max<std::size_t>(*index + 1, 2 * memo_.size()));
  }
  memo_[*index] = stack_.back();
  return Step::kGoOn;
}

Step PickleMachine::recall(std::optional<std::uint64_t> index) {
  if (!index) {
    return Step::kCut;
  }
  return *index < memo_.size() ? push(memo_[*index]) : refuse("it recalls what it never kept");
}

Step PickleMachine::memo(unsigned char op) {
  const auto from_line = [this]() -> std::optional<std::uint64_t> {
    const auto line = in_.line();
    return line ? std::optional(static_cast<std::uint64_t>(whole_of(*line))) : std::nullopt;
  };
  switch (op) {
    case 'p':
      return remember(from_line());
    case 0x94:  // MEMOIZE: in_ counts them
      return remember(in_.next_memo());
    case 'g':
      return recall(from_line());
    default:
      return named(op);
  }
}

}  // namespace ddpdoctor::imports

// SPDX-License-Identifier: Apache-2.0
// What a pickle may name and call. Everything else is refused with its name; nothing is executed.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/imports/documents/pickle_machine.h"

namespace ddpdoctor::imports {
namespace {

using Kind = PlainValue::Kind;

/// A name that plain data may contain; `maker` says what a call of it returns.
struct KnownName {
  std::string_view module;
  std::string_view name;
  enum class Makes { kDict, kList, kFirstArgument, kNothing } makes;
};

constexpr std::array<KnownName, 19> kKnownNames{{
    {"collections", "OrderedDict", KnownName::Makes::kDict},
    {"collections", "defaultdict", KnownName::Makes::kDict},
    {"builtins", "dict", KnownName::Makes::kDict},
    {"__builtin__", "dict", KnownName::Makes::kDict},
    {"builtins", "list", KnownName::Makes::kList},
    {"__builtin__", "list", KnownName::Makes::kList},
    {"builtins", "set", KnownName::Makes::kList},
    {"__builtin__", "set", KnownName::Makes::kList},
    {"builtins", "frozenset", KnownName::Makes::kList},
    {"__builtin__", "frozenset", KnownName::Makes::kList},
    {"builtins", "bytearray", KnownName::Makes::kFirstArgument},
    {"__builtin__", "bytearray", KnownName::Makes::kFirstArgument},
    {"_codecs", "encode", KnownName::Makes::kFirstArgument},
    {"builtins", "int", KnownName::Makes::kNothing},
    {"builtins", "float", KnownName::Makes::kNothing},
    {"builtins", "str", KnownName::Makes::kNothing},
    {"builtins", "tuple", KnownName::Makes::kNothing},
    {"__builtin__", "int", KnownName::Makes::kNothing},
    {"__builtin__", "str", KnownName::Makes::kNothing},
}};

}  // namespace

Step PickleMachine::name_value(std::string_view module, std::string_view name) {
  const auto* const known =
      std::find_if(kKnownNames.begin(), kKnownNames.end(),
                   [&](const KnownName& one) { return one.module == module && one.name == name; });
  if (known == kKnownNames.end()) {
    return forbid(fmt::format("it wants {}.{}", base::elide(base::printable(module), 60),
                              base::elide(base::printable(name), 60)));
  }
  PlainValue value;
  value.kind = Kind::kName;
  value.whole = known - kKnownNames.begin();
  return push(value);
}

/// The value that a call of a known name gives.
Step PickleMachine::call() {
  const std::size_t count = stack_.size();
  if (count < 2 || !stack_[count - 2].is(Kind::kName) || !stack_[count - 1].is(Kind::kList)) {
    return forbid("it calls an unknown name");
  }
  const KnownName& name = kKnownNames.at(static_cast<std::size_t>(stack_[count - 2].whole));
  const std::span<const PlainValue> arguments = document_.items(stack_[count - 1]);
  const PlainValue first = arguments.empty() ? PlainValue{} : arguments.front();
  stack_.resize(count - 2);
  switch (name.makes) {
    case KnownName::Makes::kFirstArgument:
      return push(first);
    case KnownName::Makes::kList: {
      return push(first.is(Kind::kList) ? first : document_.make(Kind::kList));
    }
    case KnownName::Makes::kDict: {
      const PlainValue made = first.is(Kind::kDict) ? first : document_.make(Kind::kDict);
      std::vector<PlainValue> entries;
      for (const PlainValue& pair : document_.items(first)) {
        const auto both = document_.items(pair);
        if (first.is(Kind::kList) && both.size() == 2) {
          entries.insert(entries.end(), both.begin(), both.end());
        }
      }
      document_.append(made, entries);
      return push(made);
    }
    case KnownName::Makes::kNothing:
      break;
  }
  return forbid(fmt::format("it calls {}.{}", name.module, name.name));
}

Step PickleMachine::named(unsigned char op) {
  switch (op) {
    case 'c': {  // GLOBAL
      const auto module = in_.line();
      const auto name = module ? in_.line() : std::nullopt;
      return name ? name_value(*module, *name) : Step::kCut;
    }
    case 0x93: {  // STACK_GLOBAL
      if (stack_.size() < 2) {
        return refuse("it names what is not there");
      }
      const PlainValue module = stack_[stack_.size() - 2];
      const PlainValue name = stack_.back();
      stack_.resize(stack_.size() - 2);
      return name_value(module.as_text(), name.as_text());
    }
    case 'R':   // REDUCE
    case 0x81:  // NEWOBJ
      return call();
    case 'i': {  // INST
      const auto module = in_.line();
      const auto name = module ? in_.line() : std::nullopt;
      if (!name) {
        return Step::kCut;
      }
      return forbid(fmt::format("it wants {}.{}", base::elide(base::printable(*module), 60),
                                base::elide(base::printable(*name), 60)));
    }
    case 'o':
      return forbid("it wants an object of a class");
    case 'b':
      return forbid("it wants to set the state of an object");
    case 0x92:
      return forbid("it wants an object of a class");
    case 'P':
    case 'Q':
      return forbid("it wants an object from outside");
    case 0x82:
    case 0x83:
    case 0x84:
      return forbid("it wants a registered extension");
    default:
      return refuse(fmt::format("0x{:02x} is not an instruction", op));
  }
}

}  // namespace ddpdoctor::imports

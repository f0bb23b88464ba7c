// SPDX-License-Identifier: Apache-2.0
#include "collector/imports/documents/pickle.h"

#include <gtest/gtest.h>

#include "collector/imports/documents/plain_json.h"

namespace ddpdoctor::imports {
namespace {

using Kind = PlainValue::Kind;
using namespace std::string_literals;

/// The content of a pickle as text: numbers, 'texts', [lists] and {dicts}, three levels deep.
// NOLINTNEXTLINE(misc-no-recursion): three levels
std::string told(const PlainDocument& document, const PlainValue& value, int depth = 4) {
  switch (value.kind) {
    case Kind::kNone:
      return "None";
    case Kind::kFlag:
      return value.as_flag() ? "True" : "False";
    case Kind::kWhole:
      return std::to_string(value.whole);
    case Kind::kNumber:
      return std::to_string(value.number);
    case Kind::kText:
      return "'" + std::string(value.as_text()) + "'";
    case Kind::kList:
    case Kind::kDict: {
      std::string out;
      for (const PlainValue& item : document.items(value)) {
        out += (out.empty() ? "" : " ") + (depth == 0 ? "…" : told(document, item, depth - 1));
      }
      return value.is(Kind::kList) ? "[" + out + "]" : "{" + out + "}";
    }
    case Kind::kName:
    case Kind::kMark:
      break;
  }
  return "?";
}

std::string read(std::string_view bytes) {
  PlainDocument document;
  const auto result = read_pickle(bytes, "rank_0", document);
  if (!result) {
    return result.error().error.what;
  }
  return told(document, document.root) + (document.cut ? " cut" : "");
}

bool wants_to_run(std::string_view bytes) {
  PlainDocument document;
  const auto result = read_pickle(bytes, "rank_0", document);
  return !result && result.error().wants_to_run;
}

TEST(Pickle, EveryProtocolSaysTheSame) {
  const std::string expected = "{'a' [1 -2 300 None True 'é'] 'b' 0.500000}";
  // pickle.dumps({"a": [1, -2, 300, None, True, "é"], "b": 0.5}, PROTOCOL) of CPython 3.11.
  EXPECT_EQ(read("(dp0\nVa\np1\n(lp2\nI1\naI-2\naI300\naNaI01\naV\xe9\np3\nasVb\np4\nF0.5\ns."),
            expected);
  EXPECT_EQ(read("}q\0(X\1\0\0\0aq\1]q\2(K\1J\xfe\xff\xff\xffM\x2c\1NI01\nX\2\0\0\0\xc3\xa9q\3e"
                 "X\1\0\0\0bq\4G?\xe0\0\0\0\0\0\0u."s),
            expected);
  EXPECT_EQ(read("\x80\2}q\0(X\1\0\0\0aq\1]q\2(K\1J\xfe\xff\xff\xffM\x2c\1N\x88X\2\0\0\0\xc3\xa9q"
                 "\3eX\1\0\0\0bq\4G?\xe0\0\0\0\0\0\0u."s),
            expected);
  EXPECT_EQ(read("\x80\4\x95\x2d\0\0\0\0\0\0\0}\x94(\x8c\1a\x94]\x94(K\1J\xfe\xff\xff\xffM\x2c\1N"
                 "\x88\x8c\2\xc3\xa9\x94"
                 "e\x8c\1b\x94G?\xe0\0\0\0\0\0\0u."s),
            expected);
}

/// pickle.dumps of CPython 3.11, protocol 2, of numbers of every width, a tuple, a dict in a list.
const std::string kAllWidths(
    "\x80\x02\x7d\x71\x00\x28\x58\x01\x00\x00\x00\x61\x71\x01\x5d\x71\x02\x28\x4b\x01\x4b"
    "\xff\x4d\x00\x01\x4d\xff\xff\x4a\x00\x00\x01\x00\x4a\xff\xff\xff\xff\x4a\xff\xff\xff"
    "\x7f\x4a\x00\x00\x00\x80\x8a\x05\x00\x00\x00\x80\x00\x8a\x06\x00\x00\x00\x00\x00\xff"
    "\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x80\x65"
    "\x58\x01\x00\x00\x00\x74\x71\x03\x4b\x01\x4b\x02\x86\x71\x04\x58\x01\x00\x00\x00\x66"
    "\x71\x05\x47\x3f\xf8\x00\x00\x00\x00\x00\x00\x58\x01\x00\x00\x00\x6e\x71\x06\x4e\x58"
    "\x01\x00\x00\x00\x79\x71\x07\x88\x58\x01\x00\x00\x00\x78\x71\x08\x89\x58\x01\x00\x00"
    "\x00\x6c\x71\x09\x5d\x71\x0a\x28\x68\x01\x7d\x71\x0b\x68\x01\x68\x01\x73\x65\x75\x2e",
    168);

TEST(Pickle, NumbersOfEveryWidthAreWhatTheyWere) {
  EXPECT_EQ(read(kAllWidths),
            "{'a' [1 255 256 65535 65536 -1 2147483647 -2147483648 2147483648 -1099511627776 "
            "9223372036854775807 -9223372036854775808] 't' [1 2] 'f' 1.500000 'n' None 'y' True "
            "'x' False 'l' ['a' {'a' 'a'}]}");
}

// Far from the end, instructions run on bare pointers, near it one by one: the results must be
// equal.
TEST(Pickle, WhatLiesBehindTheEndChangesNothing) {
  const std::string with_more = kAllWidths + std::string(64, 'N');
  EXPECT_EQ(read(with_more), read(kAllWidths));
  for (std::size_t size = 2; size < kAllWidths.size(); ++size) {
    const std::string cut = kAllWidths.substr(0, size);
    PlainDocument document;
    const auto result = read_pickle(cut, "rank_0", document);
    EXPECT_TRUE(!result || document.cut) << size;
  }
}

// A missing mark, an object that is not a container, an unknown memo index.
TEST(Pickle, WhatDoesNotFitIsRefusedInTheMiddleOfMuch) {
  const std::string much(64, 'N');
  for (const std::string_view wrong : {"u", "e", "(u", "K\1(NNu", "](N(u", "h\xf0", "}(Nu"}) {
    EXPECT_NE(read("\x80\2" + std::string(wrong) + much + ".").find("rank_0"), std::string::npos)
        << wrong;
  }
}

TEST(Pickle, HarmlessCollectionsArePlain) {
  EXPECT_EQ(read("\x80\2"
                 "ccollections\nOrderedDict\n)RU\1aK\1s."),
            "{'a' 1}");
  EXPECT_EQ(read("\x80\2"
                 "ccollections\ndefaultdict\nc__builtin__\nlist\n\x85RU\1aK\1s."),
            "{'a' 1}");
  EXPECT_EQ(read("\x80\4\x8f(K\1K\2\x90."), "[1 2]");
}

TEST(Pickle, WhatWouldRunSomethingIsRefusedByName) {
  EXPECT_EQ(read("\x80\2"
                 "cposix\nsystem\nU\4true\x85R."),
            "rank_0 is refused: it wants posix.system, which plain data never does");
  EXPECT_TRUE(
      wants_to_run("\x80\2"
                   "cposix\nsystem\n."));
  EXPECT_TRUE(wants_to_run("\x80\4\x8c\5posix\x8c\6system\x93."));
  EXPECT_TRUE(wants_to_run("(S'true'\nios\nsystem\n."));
  EXPECT_TRUE(wants_to_run("(cos\nsystem\nS'true'\no."));
  EXPECT_TRUE(wants_to_run("\x80\2}}b."));
  EXPECT_TRUE(wants_to_run("\x80\2Pname\n."));
  EXPECT_TRUE(
      wants_to_run("\x80\2"
                   "ccollections\nOrderedDict\n)R}b."));
  EXPECT_TRUE(
      wants_to_run("\x80\2"
                   "cbuiltins\nstr\nU\1a\x85R."));
}

TEST(Pickle, ACutOneKeepsWhatHadCome) {
  EXPECT_EQ(read("\x80\2}(U\1aK\1U\1b](K\2K\3U\5hel"), "{'a' 1 'b' [2 3]} cut");
  EXPECT_EQ(read("\x80\2}q"), "{} cut");
  EXPECT_EQ(read("\x80"), "None cut");
}

TEST(Pickle, NonsenseIsNamedWithItsPlace) {
  EXPECT_NE(read("\x80\2"
                 "e.")
                .find("rank_0 is a damaged pickle: it closes what is not open"),
            std::string::npos);
  EXPECT_NE(read("\x80\2h\5.").find("it recalls what it never kept (at byte 4)"),
            std::string::npos);
  EXPECT_NE(read("\x80\2\xff.").find("0xff is not an instruction"), std::string::npos);
  EXPECT_NE(read("\x80\2.").find("ends without a value"), std::string::npos);
  EXPECT_NE(read("\x80\2Nr\xff\xff\xff\xff.").find("remembers what is not there"),
            std::string::npos);
}

TEST(Pickle, DepthAndSelfReferenceDoNoHarm) {
  constexpr std::size_t kDeep = 300'000;
  EXPECT_TRUE(read("\x80\2" + std::string(kDeep, ']') + std::string(kDeep - 1, 'a') + ".")
                  .starts_with("[[[["));
  EXPECT_EQ(read("\x80\2]q\0h\0a."s), "[[[[[…]]]]]");
}

TEST(PlainJson, ReadsAndRescuesWhatWasCut) {
  PlainDocument document;
  ASSERT_TRUE(read_plain_json(R"({"a":[1,2.5,null,"x"],"b":true})", "f", document));
  EXPECT_EQ(told(document, document.root), "{'a' [1 2.500000 None 'x'] 'b' True}");
  EXPECT_FALSE(document.cut);
  ASSERT_TRUE(read_plain_json(R"({"a":[1,{"b":2,"c)", "f", document));
  EXPECT_EQ(told(document, document.root), "{'a' [1 {'b' 2}]}");
  EXPECT_TRUE(document.cut);
  const auto no_json = read_plain_json(R"({"a" x "b", "c", "d", "e"})", "f", document);
  ASSERT_FALSE(no_json);
  EXPECT_NE(no_json.error().what.find("f is not JSON"), std::string::npos);
}

}  // namespace
}  // namespace ddpdoctor::imports

// SPDX-License-Identifier: Apache-2.0
#include "collector/imports/documents/json_text.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "collector/imports/documents/json_cursor.h"
#include "collector/imports/documents/plain_json.h"

namespace ddpdoctor::imports {
namespace {

/// The document as nlohmann's parser and ours read it; the error's sentence if ours refuses it.
std::string read(std::string_view text) {
  const auto document = read_json(text, "f");
  return document ? tree_of(*document, document->root).dump() : document.error().what;
}

TEST(JsonText, ReadsWhatAnotherParserReads) {
  for (const std::string_view text :
       {R"({})", R"([])", R"([[],{},[{}]])", R"( {"a" : [ 1 , -2.5e-3, 0, -0, 1E2 ] ,"b":null} )",
        R"({"a":1,"b":{"c":[true,false,null]},"a":2})", R"("text")", R"(7)",
        R"(["\"\\\/\b\f\n\r\t","\u00e9\u20ac\ud83d\ude00","x\ny\u0041"])",
        "[\"\xc3\xa9\xf0\x9f\x98\x80\"]", R"([9223372036854775807,-9223372036854775808,1e-400])",
        "\xef\xbb\xbf[1]"}) {
    EXPECT_EQ(read(text), nlohmann::json::parse(text).dump()) << text;
  }
  EXPECT_EQ(read("[18446744073709551615]"), "[1.8446744073709552e+19]");
}

TEST(JsonText, RefusesWhatAnotherParserRefuses) {
  for (const std::string_view text : {"{",
                                      "[1,]",
                                      "[,1]",
                                      "{\"a\"}",
                                      "{\"a\":}",
                                      "{\"a\":1,}",
                                      "{1:2}",
                                      "[1 2]",
                                      "01",
                                      "1.",
                                      ".5",
                                      "+1",
                                      "1e",
                                      "-",
                                      "nul",
                                      "NaN",
                                      "[1]]",
                                      "\"\x01\"",
                                      "\"\\x\"",
                                      "\"\\u12g4\"",
                                      "\"\\ud800\"",
                                      "\"\\ude00\"",
                                      "\"\\ud800\\u0041\"",
                                      "\"\xff\"",
                                      "\"\xc0\xaf\"",
                                      "\"\xed\xa0\x80\"",
                                      "\"\xf5\x80\x80\x80\"",
                                      "]",
                                      "[}",
                                      "{]"}) {
    ASSERT_TRUE(nlohmann::json::parse(text, nullptr, false).is_discarded()) << text;
    EXPECT_TRUE(read(text).starts_with("f cannot be read: ")) << text << ": " << read(text);
  }
  EXPECT_EQ(read("[1,\n x]"), "f cannot be read: it is not valid JSON near byte 5 (line 2)");
  EXPECT_EQ(read("[1e999]"), "f cannot be read: the number 1e999 near byte 1 is too large");
}

TEST(JsonText, EveryBeginningIsRescuedAndNotAccepted) {
  const std::string text = "{\"a\":[1,\"\\u00e9\\ud83d\\ude00 \xc3\xa9\",{\"b\":true}],\"c\":null}";
  PlainDocument document;
  for (std::size_t size = 1; size < text.size(); ++size) {
    const std::string_view beginning = std::string_view(text).substr(0, size);
    EXPECT_EQ(read(beginning), "f cannot be read: it ends in the middle of the JSON document");
    EXPECT_TRUE(read_plain_json(beginning, "f", document)) << beginning;
    EXPECT_TRUE(document.cut);
  }
}

TEST(JsonText, ACursorNamesThePlaceOfAWrongType) {
  const auto document = read_json(R"({"list":[{"number":1},{"number":"x"}],"none":null})", "f");
  ASSERT_TRUE(document);
  Complaint complaint{.file = "f", .first = {}};
  const Cursor root(*document, complaint);
  const Cursor none = root["none"];
  EXPECT_FALSE(none.present());
  const Cursor list = root["list"];
  list.each([](const Cursor& entry) {
    const Cursor number = entry["number"];
    (void)number.whole(0, 9);
  });
  ASSERT_TRUE(complaint.first);
  EXPECT_EQ(complaint.first->what,
            "f: list[1].number must be a whole number from 0 to 9, not \"x\"");
}

}  // namespace
}  // namespace ddpdoctor::imports

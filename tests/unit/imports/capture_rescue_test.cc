// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "collector/imports/capture/rescue.h"

namespace ddpdoctor::imports {
namespace {

std::string closed(std::string_view beginning) {
  return close_document(beginning).text;
}

TEST(CloseDocument, KeepsWholeEntriesOfLists) {
  EXPECT_EQ(closed(R"({"schema":"x","facts":[{"a":1},{"b":)"),
            R"({"schema":"x","facts":[{"a":1}]})");
  EXPECT_EQ(closed(R"({"schema":"x","facts":[{"a":1})"), R"({"schema":"x","facts":[{"a":1}]})");
  EXPECT_EQ(closed(R"({"schema":"x","facts":[{"a":1)"), R"({"schema":"x"})");
  EXPECT_EQ(closed(R"({"sources":{"f":{"1":"x"},"g":{"1":"y)"), R"({"sources":{"f":{"1":"x"}}})");
}

TEST(CloseDocument, KeepsOtherMembersWholeOrNotAtAll) {
  EXPECT_EQ(closed(R"({"schema":"x","job":{"world_size":4,"command":["a")"), R"({"schema":"x"})");
  EXPECT_EQ(closed(R"({"schema":"x","job":{"world_size":4},)"),
            R"({"schema":"x","job":{"world_size":4}})");
  EXPECT_EQ(closed(R"({"schema":"x","other":[1,2)"), R"({"schema":"x"})");
}

TEST(CloseDocument, KeepsWholeProcessesOfTheLastObservation) {
  const ClosedDocument cut =
      close_document(R"({"observations":[{"time":1,"processes":[{"pid":1},{"pid":2,"th)");
  EXPECT_EQ(cut.text, R"({"observations":[{"time":1,"processes":[{"pid":1}]}]})");
  EXPECT_TRUE(cut.in_observation);
  EXPECT_TRUE(cut.whole.empty());
}

TEST(CloseDocument, IsNotMisledByTexts) {
  EXPECT_EQ(closed(R"({"a":"}]\",{","job":{)"), R"({"a":"}]\",{"})");
}

TEST(CloseDocument, OfAWholeDocumentIsTheDocument) {
  const ClosedDocument whole = close_document(R"({"job":{},"facts":[1,2]})");
  EXPECT_EQ(whole.text, R"({"job":{},"facts":[1,2]})");
  EXPECT_EQ(whole.whole, (std::vector<std::string>{"job", "facts"}));
}

TEST(CloseDocument, OfNothingIsNothing) {
  EXPECT_EQ(closed(""), "");
  EXPECT_EQ(closed("{"), "");
  EXPECT_EQ(closed("]]]]"), "");
}

}  // namespace
}  // namespace ddpdoctor::imports

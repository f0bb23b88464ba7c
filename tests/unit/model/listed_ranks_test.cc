// SPDX-License-Identifier: Apache-2.0
#include "collector/model/listed_ranks.h"

#include <string>

#include <gtest/gtest.h>

namespace ddpdoctor::model {
namespace {

TEST(ListedRanks, AreReadInTheFormsThatProgramsWrite) {
  EXPECT_EQ(listed_ranks("0,2-5").ranks, (std::vector<Rank>{0, 2, 3, 4, 5}));
  EXPECT_EQ(listed_ranks("[2, 0, 1]").ranks, (std::vector<Rank>{2, 0, 1}));
  EXPECT_EQ(listed_ranks("{0, 3}").ranks, (std::vector<Rank>{0, 3}));
  EXPECT_EQ(listed_ranks("(4,)").ranks, std::vector<Rank>{4});
  EXPECT_EQ(listed_ranks("0, 1 and 4").ranks, (std::vector<Rank>{0, 1, 4}));
  EXPECT_TRUE(listed_ranks("[]").whole);
}

TEST(ListedRanks, AreThoseThatASetSays) {
  for (const RankSet& set :
       {RankSet{3}, RankSet{0, 2}, RankSet{0, 1, 2, 4}, RankSet{1, 9, 17, 25, 33}}) {
    const std::string said = set.said();
    const ListedRanks listed = listed_ranks(said.substr(said.find(' ') + 1));
    EXPECT_TRUE(listed.whole) << said;
    EXPECT_EQ(RankSet(listed.ranks), set) << said;
  }
}

TEST(ListedRanks, LeaveOutWhatIsNoRank) {
  const ListedRanks cut = listed_ranks("[0, 1, ...]");
  EXPECT_EQ(cut.ranks, (std::vector<Rank>{0, 1}));
  EXPECT_FALSE(cut.whole);
  for (const char* const text :
       {"3-1", "1-", "-1", "1.5", "0-8 step 0", "99999999", "a", "0-131072"}) {
    EXPECT_TRUE(listed_ranks(text).ranks.empty()) << text;
    EXPECT_FALSE(listed_ranks(text).whole) << text;
  }
}

}  // namespace
}  // namespace ddpdoctor::model

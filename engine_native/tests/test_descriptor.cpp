// The fields of a descriptor's word.
#include <gtest/gtest.h>

#include "systems/eris/incoming_protocol.hpp"

namespace numatwin::native::descriptor {
namespace {

TEST(Descriptor, HasOneBit32BitsAnd31Bits) {
    EXPECT_EQ(active_bit, 0x8000'0000'0000'0000u);
    EXPECT_EQ(writers_mask, 0x7fff'ffffu);
    EXPECT_EQ(offset_max, 0xffff'ffffu);
    EXPECT_EQ(active_bit | offset_max << offset_shift | writers_mask, ~Word{0});
}

TEST(Descriptor, ReservingMovesTheOffsetAndAddsAWriter) {
    Word word = active_bit;
    word = reserved(word, 24);
    word = reserved(word, 4096);
    EXPECT_TRUE(is_active(word));
    EXPECT_EQ(offset(word), 4120u);
    EXPECT_EQ(writers(word), 2u);
    word -= one_writer;
    EXPECT_EQ(offset(word), 4120u);
    EXPECT_EQ(writers(word), 1u);
}

TEST(Descriptor, FieldsDoNotRunIntoEachOther) {
    const Word full = reserved(active_bit | (writers_mask - 1), offset_max);
    EXPECT_EQ(full, ~Word{0});
    EXPECT_EQ(offset(full), offset_max);
    EXPECT_EQ(writers(full), writers_mask);
    const Word closed = full - active_bit;
    EXPECT_FALSE(is_active(closed));
    EXPECT_EQ(offset(closed), offset_max);
    EXPECT_EQ(writers(closed), writers_mask);
}

}  // namespace
}  // namespace numatwin::native::descriptor

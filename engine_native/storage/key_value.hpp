// A key with its value, as runs of them are flattened, streamed and built.
#pragma once

#include <cstdint>

namespace numatwin::native {

struct KeyValue {
    std::uint64_t key;
    std::uint64_t value;

    friend bool operator==(const KeyValue&, const KeyValue&) = default;
};

}  // namespace numatwin::native

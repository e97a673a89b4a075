// Sizes and addresses in whole pages, lines or blocks.
#pragma once

#include <cstddef>

namespace numatwin::native {

/// The smallest multiple of `to` that is not below `bytes`.
constexpr std::size_t round_up(std::size_t bytes, std::size_t to) {
    return (bytes + to - 1) / to * to;
}

}  // namespace numatwin::native

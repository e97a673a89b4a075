#include "systems/eris/choice.hpp"

#include <cmath>
#include <stdexcept>

namespace numatwin::native {

Choice::Choice(std::span<const double> weights) {
    double total = 0;
    for (const double weight : weights) {
        if (!(weight >= 0) || !std::isfinite(weight))
            throw std::invalid_argument("shares: expected finite numbers of at least 0");
        total += weight;
    }
    if (!(total > 0) || !std::isfinite(total))
        throw std::invalid_argument("shares: expected a finite sum above 0");
    const std::size_t count = weights.size();
    slots_.resize(count);
    std::vector<double> left(count);
    std::vector<std::size_t> small, large;
    for (std::size_t k = 0; k < count; ++k) {
        left[k] = weights[k] / total * static_cast<double>(count);
        (left[k] < 1 ? small : large).push_back(k);
    }
    while (!small.empty() && !large.empty()) {
        const std::size_t few = small.back(), many = large.back();
        small.pop_back();
        // 2^64 itself has no place in 64 bits, but a part below 1 times 2^64 does.
        slots_[few] = {static_cast<std::uint64_t>(left[few] * 0x1p64), many};
        left[many] -= 1 - left[few];
        if (left[many] < 1) {
            large.pop_back();
            small.push_back(many);
        }
    }
    // What rounding left over is as good as whole; but never one that has no weight.
    for (const auto* rest : {&small, &large})
        for (const std::size_t k : *rest) {
            std::size_t other = k;
            if (weights[k] == 0)
                while (weights[other] == 0) other = (other + 1) % count;
            slots_[k] = {weights[k] == 0 ? 0 : ~std::uint64_t{0}, other};
        }
}

}  // namespace numatwin::native

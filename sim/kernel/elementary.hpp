// Logarithm and exponential from IEEE basic operations only: the same bits on any machine.
#pragma once

#include <bit>
#include <cstdint>

namespace numatwin {

// C libraries differ in the last bit of log and exp, and with it a trace of millions of events. The
// two below use nothing but + - * /, which IEEE 754 defines to the bit (and the kernel is compiled
// without contraction to fused operations). Both are within 1 ulp.
//
// Reduction and coefficients are those of fdlibm's e_log.c and e_exp.c:
//
//     Copyright (C) 1993 by Sun Microsystems, Inc. All rights reserved. Developed at SunSoft, a Sun
//     Microsystems, Inc. business. Permission to use, copy, modify, and distribute this software is
//     freely granted, provided that this notice is preserved.
namespace elementary {

constexpr double ln2_high = 6.93147180369123816490e-01;
constexpr double ln2_low = 1.90821492927058770002e-10;

// For normal x above 0. x = 2^k (1 + f) with 1 + f in [sqrt(2)/2, sqrt(2)); with s = f / (2 + f)
//
//     log(1 + f) = log(1 + s) - log(1 - s) = 2s + 2/3 s^3 + 2/5 s^5 + …
inline double log(double x) {
    constexpr std::uint64_t one = 0x3FF0000000000000, root_half = 0x3FE6A09E00000000;
    const std::uint64_t bits = std::bit_cast<std::uint64_t>(x) + (one - root_half);
    const auto k = static_cast<double>(static_cast<std::int64_t>(bits >> 52) - 0x3FF);
    const double f = std::bit_cast<double>((bits & 0x000FFFFFFFFFFFFF) + root_half) - 1.0;
    const double half_square = 0.5 * f * f;
    const double s = f / (2.0 + f);
    const double z = s * s;
    const double w = z * z;
    const double even = w * (3.999999999940941908e-01 +
                             w * (2.222219843214978396e-01 + w * 1.531383769920937332e-01));
    const double odd = z * (6.666666666666735130e-01 +
                            w * (2.857142874366239149e-01 +
                                 w * (1.818357216161805012e-01 + w * 1.479819860511658591e-01)));
    return s * (half_square + (odd + even)) + k * ln2_low - half_square + f + k * ln2_high;
}

// For x from -700 to 700. x = k ln 2 + r with |r| <= ln(2) / 2.
inline double exp(double x) {
    const auto k = static_cast<std::int64_t>(1.44269504088896338700 * x + (x < 0 ? -0.5 : 0.5));
    const double high = x - static_cast<double>(k) * ln2_high;
    const double low = static_cast<double>(k) * ln2_low;
    const double r = high - low;
    const double z = r * r;
    const double c =
        r - z * (1.66666666666666019037e-01 +
                 z * (-2.77777777770155933842e-03 +
                      z * (6.61375632143793436117e-05 +
                           z * (-1.65339022054652515390e-06 + z * 4.13813679705723846039e-08))));
    const double y = 1.0 + (r * c / (2.0 - c) - low + high);
    return y * std::bit_cast<double>(static_cast<std::uint64_t>(k + 0x3FF) << 52);
}

// log(1 + y) / y and (exp(z) - 1) / z without loss near 0: the rounding of 1 + y cancels out
// (Kahan; Higham, Accuracy and Stability of Numerical Algorithms, 1.14.1).
inline double log1p_ratio(double y) {
    const double u = 1.0 + y;
    return u == 1.0 ? 1.0 : log(u) / (u - 1.0);
}
inline double exprel(double z) {
    const double u = exp(z);
    return u == 1.0 ? 1.0 : (u - 1.0) / log(u);
}

}  // namespace elementary
}  // namespace numatwin

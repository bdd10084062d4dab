// Packs: as many doubles (or floats) as fit into one register of the current instruction set.
//
// GCC and Clang provide the arithmetic as vector extensions. With other compilers a pack is a single number.
#pragma once

#include <math.h>

#include <cmath>
#include <cstring>

#include "isa.h"

namespace caransac::CARANSAC_ISA {

#if defined(__GNUC__) || defined(__clang__)
#if defined(__AVX512F__)
constexpr int kPackBytes = 64;
#elif defined(__AVX__)
constexpr int kPackBytes = 32;
#else
constexpr int kPackBytes = 16;
#endif
typedef double Doubles __attribute__((vector_size(kPackBytes)));
typedef float Floats __attribute__((vector_size(kPackBytes)));
typedef long long Longs __attribute__((vector_size(kPackBytes)));
typedef unsigned long long Bits __attribute__((vector_size(kPackBytes)));
typedef int Ints __attribute__((vector_size(kPackBytes)));
typedef float HalfFloats __attribute__((vector_size(kPackBytes / 2)));
constexpr int kDoubles = kPackBytes / static_cast<int>(sizeof(double));
constexpr int kFloats = kPackBytes / static_cast<int>(sizeof(float));
inline double lane(const Doubles& pack, int i) { return pack[i]; }
inline float lane(const Floats& pack, int i) { return pack[i]; }
inline unsigned long long lane(const Bits& pack, int i) { return pack[i]; }
template <class T>
using NumberOf = decltype(lane(T(), 0));
inline void set_lane(Doubles& pack, int i, double value) { pack[i] = value; }
inline void set_lane(Floats& pack, int i, float value) { pack[i] = value; }
inline int lowest_bit(unsigned long long bits) { return __builtin_ctzll(bits); }
inline Doubles to_doubles(const Longs& pack) { return __builtin_convertvector(pack, Doubles); }
inline Floats to_floats(const Ints& pack) { return __builtin_convertvector(pack, Floats); }
inline HalfFloats to_half_floats(const Doubles& pack) { return __builtin_convertvector(pack, HalfFloats); }
#else
typedef double Doubles;
typedef float Floats;
typedef long long Longs;
typedef unsigned long long Bits;
typedef int Ints;
typedef float HalfFloats;
constexpr int kDoubles = 1;
constexpr int kFloats = 1;
inline double lane(const Doubles& pack, int) { return pack; }
inline float lane(const Floats& pack, int) { return pack; }
inline unsigned long long lane(const Bits& pack, int) { return pack; }
inline void set_lane(Doubles& pack, int, double value) { pack = value; }
inline void set_lane(Floats& pack, int, float value) { pack = value; }
inline int lowest_bit(unsigned long long bits) {
    int i = 0;
    while ((bits >> i & 1) == 0) ++i;
    return i;
}
inline Doubles to_doubles(const Longs& pack) { return static_cast<double>(pack); }
inline Floats to_floats(const Ints& pack) { return static_cast<float>(pack); }
inline HalfFloats to_half_floats(const Doubles& pack) { return static_cast<float>(pack); }
#endif

inline Doubles broadcast(double value) { return Doubles{} + value; }
inline Floats broadcast(float value) { return Floats{} + value; }

inline Doubles load(const double* from) {
    Doubles pack;
    std::memcpy(&pack, from, sizeof(pack));
    return pack;
}
inline Floats load(const float* from) {
    Floats pack;
    std::memcpy(&pack, from, sizeof(pack));
    return pack;
}
inline void store(float* to, const Floats& pack) { std::memcpy(to, &pack, sizeof(pack)); }
inline void store(double* to, const Doubles& pack) { std::memcpy(to, &pack, sizeof(pack)); }
inline void store(float* to, const Doubles& pack) {
    const HalfFloats rounded = to_half_floats(pack);
    std::memcpy(to, &rounded, sizeof(rounded));
}

inline Ints bits_of(const Floats& pack) {
    Ints bits;
    std::memcpy(&bits, &pack, sizeof(bits));
    return bits;
}
inline Floats from_bits(const Ints& bits) {
    Floats pack;
    std::memcpy(&pack, &bits, sizeof(pack));
    return pack;
}

inline Floats smaller(const Floats& a, const Floats& b) { return a < b ? a : b; }
inline Floats larger(const Floats& a, const Floats& b) { return a > b ? a : b; }

inline float largest(const Floats& pack) {
    float values[kFloats];
    store(values, pack);
    for (int half = kFloats / 2; half > 0; half /= 2)
        for (int i = 0; i < half; ++i) values[i] = values[i] > values[i + half] ? values[i] : values[i + half];
    return values[0];
}

inline Doubles square_root(const Doubles& pack) {
    Doubles root{};
    for (int i = 0; i < kDoubles; ++i) set_lane(root, i, std::sqrt(lane(pack, i)));
    return root;
}

inline Floats square_root(const Floats& pack) {
    Floats root{};
    // Not std::sqrt, whose overload for floats is an inline function shared by all instruction sets (see README.md).
    for (int i = 0; i < kFloats; ++i) set_lane(root, i, ::sqrtf(lane(pack, i)));
    return root;
}

inline bool any(const Bits& pack) {
    unsigned long long all = 0;
    for (int i = 0; i < kDoubles; ++i) all |= lane(pack, i);
    return all != 0;
}

inline double sum(const Doubles& pack) {
    double total = 0;
    for (int i = 0; i < kDoubles; ++i) total += lane(pack, i);
    return total;
}
inline double sum(const Floats& pack) {
    double total = 0;
    for (int i = 0; i < kFloats; ++i) total += static_cast<double>(lane(pack, i));
    return total;
}

// Natural logarithm of normal positive numbers, accurate to about 1 ulp: x = 2^e m with m in [sqrt(1/2), sqrt(2)), then
// the series of 2 artanh((m - 1) / (m + 1)). The C library's log handles one number at a time and dominated the time of
// the Cauchy loss.
inline Doubles logarithm(const Doubles& x) {
    Longs bits;
    std::memcpy(&bits, &x, sizeof(bits));
    constexpr long long kSqrtHalf = 0x3fe6a09e667f3bcd;  // bit pattern of sqrt(1/2)
    const Longs offset = bits - kSqrtHalf;
    const Longs exponent = offset >> 52;
    const Longs mantissa_bits = bits - (exponent << 52);
    Doubles mantissa;
    std::memcpy(&mantissa, &mantissa_bits, sizeof(mantissa));
    const Doubles s = (mantissa - 1.0) / (mantissa + 1.0), s2 = s * s;
    const Doubles s4 = s2 * s2;  // two chains of products, half as long as one
    Doubles lower = broadcast(2.0 / 19), upper = broadcast(2.0 / 21);
    for (int power = 15; power >= 3; power -= 4) {
        lower = lower * s4 + 2.0 / power;
        upper = upper * s4 + 2.0 / (power + 2);
    }
    const Doubles series = lower + s2 * upper;
    return to_doubles(exponent) * 0.6931471805599453 + (2.0 * s + s * s2 * series);
}

// The same in single precision.
inline Floats logarithm(const Floats& x) {
    Ints bits;
    std::memcpy(&bits, &x, sizeof(bits));
    constexpr int kSqrtHalf = 0x3f3504f3;
    const Ints exponent = (bits - kSqrtHalf) >> 23;
    const Ints mantissa_bits = bits - (exponent << 23);
    Floats mantissa;
    std::memcpy(&mantissa, &mantissa_bits, sizeof(mantissa));
    const Floats s = (mantissa - 1.0f) / (mantissa + 1.0f), s2 = s * s;
    Floats series = broadcast(2.0f / 9);
    for (int power = 7; power >= 3; power -= 2) series = series * s2 + 2.0f / static_cast<float>(power);
    return to_floats(exponent) * 0.69314718f + (2.0f * s + s * s2 * series);
}

}  // namespace caransac::CARANSAC_ISA

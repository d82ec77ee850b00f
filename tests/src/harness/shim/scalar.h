// half and bfloat: 16-bit types whose every operation rounds to nearest even. They convert to float
// implicitly, and from float only by name.
#pragma once

#include "traits.h"

#undef half
#define half tilewise_half
#define bfloat tilewise_bfloat

namespace shim {

constexpr float half_to_float(ushort bits) {
    uint shifted = (bits & 0x7fffu) << 13, sign = (bits & 0x8000u) << 16;
    if (shifted >= 0x0f800000u) { // infinite, NaN
        return __builtin_bit_cast(float, sign | (shifted + 0x70000000u));
    }
    // One exact product corrects the exponent's bias, also for subnormals.
    return __builtin_bit_cast(float,
        sign | __builtin_bit_cast(uint, __builtin_bit_cast(float, shifted) * 0x1p112f));
}

constexpr ushort float_to_half(float value) {
    uint bits = __builtin_bit_cast(uint, value), sign = bits >> 16 & 0x8000u;
    bits &= 0x7fffffffu;
    if (bits > 0x7f800000u) {
        return static_cast<ushort>(sign | 0x7e00u);
    }
    if (bits >= 0x47800000u) {
        return static_cast<ushort>(sign | 0x7c00u);
    }
    if (bits < 0x38800000u) { // subnormal: the addition rounds
        float sum = __builtin_bit_cast(float, bits) + 0.5f;
        return static_cast<ushort>(sign | (__builtin_bit_cast(uint, sum) - 0x3f000000u));
    }
    return static_cast<ushort>(sign | ((bits + 0xc8000fffu + (bits >> 13 & 1u)) >> 13));
}

constexpr float bfloat_to_float(ushort bits) {
    return __builtin_bit_cast(float, static_cast<uint>(bits) << 16);
}

constexpr ushort float_to_bfloat(float value) {
    uint bits = __builtin_bit_cast(uint, value);
    if ((bits & 0x7fffffffu) > 0x7f800000u) {
        return static_cast<ushort>(bits >> 16 | 0x40u);
    }
    return static_cast<ushort>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

} // namespace shim

#define TILEWISE_SMALL(name, from, to)                                                             \
    struct name {                                                                                  \
        name() = default;                                                                          \
        explicit constexpr name(int value) : bits(shim::from(static_cast<float>(value))) {}        \
        explicit constexpr name(uint value) : bits(shim::from(static_cast<float>(value))) {}       \
        explicit constexpr name(float value) : bits(shim::from(value)) {}                          \
        template <class Self, class = metal::enable_if_t<metal::is_same<Self, name>::value>>       \
        name(const __constant Self &other) : bits(other.bits) {}                                   \
        operator float() const { return shim::to(bits); }                                          \
        operator float() const __constant { return shim::to(bits); }                               \
                                                                                                   \
        friend name operator+(name a, name b) { return name(float(a) + float(b)); }                \
        friend name operator-(name a, name b) { return name(float(a) - float(b)); }                \
        friend name operator*(name a, name b) { return name(float(a) * float(b)); }                \
        friend name operator/(name a, name b) { return name(float(a) / float(b)); }                \
        friend name operator-(name a) { return name(-float(a)); }                                  \
        name &operator+=(name b) { return *this = *this + b; }                                     \
        name &operator-=(name b) { return *this = *this - b; }                                     \
        name &operator*=(name b) { return *this = *this * b; }                                     \
        name &operator/=(name b) { return *this = *this / b; }                                     \
                                                                                                   \
        ushort bits;                                                                               \
    };
TILEWISE_SMALL(half, float_to_half, half_to_float)
TILEWISE_SMALL(bfloat, float_to_bfloat, bfloat_to_float)
#undef TILEWISE_SMALL

// Without this, both operands would become float.
#define TILEWISE_APART(sign)                                                                       \
    void operator sign(half, bfloat) = delete;                                                     \
    void operator sign(bfloat, half) = delete;
TILEWISE_APART(+)
TILEWISE_APART(-)
TILEWISE_APART(*)
TILEWISE_APART(/)
#undef TILEWISE_APART

// Vectors of 2, 3 and 4, aligned as in MSL (3 as 4), with swizzles of two and three neighbours.
#pragma once

namespace metal {

template <class T, int N> struct vec;

template <class T> struct is_scalar {
    static constexpr bool value = false;
};
template <class T> struct is_integer {
    static constexpr bool value = false;
};
#define TILEWISE_SCALAR(T, integer)                                                                \
    template <> struct is_scalar<T> {                                                              \
        static constexpr bool value = true;                                                        \
    };                                                                                             \
    template <> struct is_integer<T> {                                                             \
        static constexpr bool value = integer;                                                     \
    };
TILEWISE_SCALAR(bool, true)
TILEWISE_SCALAR(char, true)
TILEWISE_SCALAR(signed char, true)
TILEWISE_SCALAR(uchar, true)
TILEWISE_SCALAR(short, true)
TILEWISE_SCALAR(ushort, true)
TILEWISE_SCALAR(int, true)
TILEWISE_SCALAR(uint, true)
TILEWISE_SCALAR(long, true)
TILEWISE_SCALAR(ulong, true)
TILEWISE_SCALAR(float, false)
TILEWISE_SCALAR(half, false)
TILEWISE_SCALAR(bfloat, false)
#undef TILEWISE_SCALAR

// A conversion that the text asks for by name.
template <class To, class From> constexpr To convert(From value) { return static_cast<To>(value); }

// `Count` neighbours from `First` of a vector whose memory this shares.
template <class T, int First, int Count, int Size> struct swizzle {
    T elements[Size];

    operator vec<T, Count>() const {
        vec<T, Count> result;
        for (int i = 0; i < Count; i++) {
            result.elements[i] = elements[First + i];
        }
        return result;
    }
    operator vec<T, Count>() const __constant {
        vec<T, Count> result;
        for (int i = 0; i < Count; i++) {
            result.elements[i] = elements[First + i];
        }
        return result;
    }
    __generic swizzle &operator=(vec<T, Count> value) {
        for (int i = 0; i < Count; i++) {
            elements[First + i] = value.elements[i];
        }
        return *this;
    }
};

#define TILEWISE_OPERATOR(sign)                                                                    \
    friend vec operator sign(vec a, vec b) {                                                       \
        vec result;                                                                                \
        for (int i = 0; i < Size; i++) {                                                           \
            result.elements[i] = static_cast<T>(a.elements[i] sign b.elements[i]);                 \
        }                                                                                          \
        return result;                                                                             \
    }                                                                                              \
    friend vec operator sign(vec a, T b) { return a sign vec(b); }                                 \
    friend vec operator sign(T a, vec b) { return vec(a) sign b; }                                 \
    vec &operator sign##=(vec b) { return *this = *this sign b; }                                  \
    vec &operator sign##=(T b) { return *this = *this sign vec(b); }
// For integers only. These are templates, so they exist only if they are used.
#define TILEWISE_BITS(sign)                                                                        \
    template <class I = T, class = enable_if_t<is_integer<I>::value>>                              \
    friend vec operator sign(vec a, vec<I, Size> b) {                                              \
        vec result;                                                                                \
        for (int i = 0; i < Size; i++) {                                                           \
            result.elements[i] = static_cast<T>(a.elements[i] sign b.elements[i]);                 \
        }                                                                                          \
        return result;                                                                             \
    }                                                                                              \
    template <class I = T, class = enable_if_t<is_integer<I>::value>>                              \
    friend vec operator sign(vec a, T b) {                                                         \
        return a sign vec(b);                                                                      \
    }                                                                                              \
    template <class I> vec &operator sign##=(I b) { return *this = *this sign vec(b); }
#define TILEWISE_COMPARISON(sign)                                                                  \
    friend vec<bool, Size> operator sign(vec a, vec b) {                                           \
        vec<bool, Size> result;                                                                    \
        for (int i = 0; i < Size; i++) {                                                           \
            result.elements[i] = a.elements[i] sign b.elements[i];                                 \
        }                                                                                          \
        return result;                                                                             \
    }                                                                                              \
    friend vec<bool, Size> operator sign(vec a, T b) { return a sign vec(b); }                     \
    friend vec<bool, Size> operator sign(T a, vec b) { return vec(a) sign b; }
// Members of vectors of every size.
#define TILEWISE_VECTOR(size)                                                                      \
    static constexpr int Size = size;                                                              \
    vec() = default;                                                                               \
    /* Not trivial, so that a misaligned vector is noticed: clang checks references,               \
        not copies of bytes. */                                                                    \
    vec(const vec &other) {                                                                        \
        for (int i = 0; i < Size; i++) {                                                           \
            elements[i] = other.elements[i];                                                       \
        }                                                                                          \
    }                                                                                              \
    vec &operator=(const vec &other) {                                                             \
        for (int i = 0; i < Size; i++) {                                                           \
            elements[i] = other.elements[i];                                                       \
        }                                                                                          \
        return *this;                                                                              \
    }                                                                                              \
    vec(T all) {                                                                                   \
        for (int i = 0; i < Size; i++) {                                                           \
            elements[i] = all;                                                                     \
        }                                                                                          \
    }                                                                                              \
    template <class S, class = enable_if_t<is_scalar<S>::value && !is_same<S, T>::value>>          \
    explicit vec(S all) : vec(static_cast<T>(all)) {}                                              \
    template <class S, class = void, class = enable_if_t<!is_same<S, T>::value>>                   \
    explicit vec(vec<S, Size> other) {                                                             \
        for (int i = 0; i < Size; i++) {                                                           \
            elements[i] = static_cast<T>(other.elements[i]);                                       \
        }                                                                                          \
    }                                                                                              \
    template <class Self, class = enable_if_t<is_same<Self, vec>::value>>                          \
    vec(const __constant Self &other) {                                                            \
        for (int i = 0; i < Size; i++) {                                                           \
            elements[i] = other.elements[i];                                                       \
        }                                                                                          \
    }                                                                                              \
    T &operator[](uint i) { return elements[i]; }                                                  \
    T operator[](uint i) const { return elements[i]; }                                             \
    T operator[](uint i) const __constant { return elements[i]; }                                  \
    friend vec operator-(vec a) {                                                                  \
        for (int i = 0; i < Size; i++) {                                                           \
            a.elements[i] = static_cast<T>(-a.elements[i]);                                        \
        }                                                                                          \
        return a;                                                                                  \
    }                                                                                              \
    friend vec<bool, Size> operator!(vec a) {                                                      \
        vec<bool, Size> result;                                                                    \
        for (int i = 0; i < Size; i++) {                                                           \
            result.elements[i] = !a.elements[i];                                                   \
        }                                                                                          \
        return result;                                                                             \
    }                                                                                              \
    TILEWISE_OPERATOR(+)                                                                           \
    TILEWISE_OPERATOR(-)                                                                           \
    TILEWISE_OPERATOR(*)                                                                           \
    TILEWISE_OPERATOR(/)                                                                           \
    TILEWISE_BITS(%)                                                                               \
    TILEWISE_BITS(&)                                                                               \
    TILEWISE_BITS(|)                                                                               \
    TILEWISE_BITS(^)                                                                               \
    TILEWISE_BITS(<<)                                                                              \
    TILEWISE_BITS(>>)                                                                              \
    TILEWISE_COMPARISON(==)                                                                        \
    TILEWISE_COMPARISON(!=)                                                                        \
    TILEWISE_COMPARISON(<)                                                                         \
    TILEWISE_COMPARISON(<=)                                                                        \
    TILEWISE_COMPARISON(>)                                                                         \
    TILEWISE_COMPARISON(>=)

template <class T> struct __attribute__((aligned(2 * sizeof(T)))) vec<T, 2> {
    union {
        T elements[2];
        struct {
            T x, y;
        };
        swizzle<T, 0, 2, 2> xy;
    };

    TILEWISE_VECTOR(2)
    template <class A, class B, class = enable_if_t<is_scalar<A>::value && is_scalar<B>::value>>
    vec(A a, B b) : elements{static_cast<T>(a), static_cast<T>(b)} {}
};

template <class T> struct __attribute__((aligned(4 * sizeof(T)))) vec<T, 3> {
    union {
        T elements[3];
        struct {
            T x, y, z;
        };
        swizzle<T, 0, 2, 3> xy;
        swizzle<T, 1, 2, 3> yz;
        swizzle<T, 0, 3, 3> xyz;
    };

    TILEWISE_VECTOR(3)
    template <class A, class B, class C,
              class = enable_if_t<is_scalar<A>::value && is_scalar<B>::value
                  && is_scalar<C>::value>>
    vec(A a, B b, C c) : elements{static_cast<T>(a), static_cast<T>(b), static_cast<T>(c)} {}
    vec(vec<T, 2> a, T b) : elements{a.x, a.y, b} {}
    vec(T a, vec<T, 2> b) : elements{a, b.x, b.y} {}
};

template <class T> struct __attribute__((aligned(4 * sizeof(T)))) vec<T, 4> {
    union {
        T elements[4];
        struct {
            T x, y, z, w;
        };
        swizzle<T, 0, 2, 4> xy;
        swizzle<T, 1, 2, 4> yz;
        swizzle<T, 2, 2, 4> zw;
        swizzle<T, 0, 3, 4> xyz;
        swizzle<T, 1, 3, 4> yzw;
    };

    TILEWISE_VECTOR(4)
    template <class A, class B, class C, class D,
              class = enable_if_t<is_scalar<A>::value && is_scalar<B>::value && is_scalar<C>::value
                  && is_scalar<D>::value>>
    vec(A a, B b, C c, D d)
        : elements{static_cast<T>(a), static_cast<T>(b), static_cast<T>(c), static_cast<T>(d)} {}
    vec(vec<T, 2> a, vec<T, 2> b) : elements{a.x, a.y, b.x, b.y} {}
    vec(vec<T, 3> a, T b) : elements{a.x, a.y, a.z, b} {}
    vec(T a, vec<T, 3> b) : elements{a, b.x, b.y, b.z} {}
    vec(vec<T, 2> a, T b, T c) : elements{a.x, a.y, b, c} {}
    vec(T a, vec<T, 2> b, T c) : elements{a, b.x, b.y, c} {}
    vec(T a, T b, vec<T, 2> c) : elements{a, b, c.x, c.y} {}
};

#undef TILEWISE_VECTOR
#undef TILEWISE_OPERATOR
#undef TILEWISE_BITS
#undef TILEWISE_COMPARISON

#define TILEWISE_NAMES(T)                                                                          \
    typedef vec<T, 2> T##2;                                                                        \
    typedef vec<T, 3> T##3;                                                                        \
    typedef vec<T, 4> T##4;
TILEWISE_NAMES(bool)
TILEWISE_NAMES(char)
TILEWISE_NAMES(uchar)
TILEWISE_NAMES(short)
TILEWISE_NAMES(ushort)
TILEWISE_NAMES(int)
TILEWISE_NAMES(uint)
TILEWISE_NAMES(long)
TILEWISE_NAMES(ulong)
TILEWISE_NAMES(float)
#undef TILEWISE_NAMES
typedef vec<half, 2> half2;
typedef vec<half, 3> half3;
typedef vec<half, 4> half4;
typedef vec<bfloat, 2> bfloat2;
typedef vec<bfloat, 3> bfloat3;
typedef vec<bfloat, 4> bfloat4;

// Four signed bytes.
struct packed_char4 {
    char elements[4];
    char operator[](uint i) const { return elements[i]; }
};

// The bits of one type as those of another of its size.
template <class To, class From> To as_type(From value) {
    static_assert(sizeof(To) == sizeof(From), "as_type: the sizes differ");
    To result;
    __builtin_memcpy(static_cast<thread void *>(&result), static_cast<const thread void *>(&value),
        sizeof(To));
    return result;
}
template <class To, class T, int First, int Count, int Size>
To as_type(swizzle<T, First, Count, Size> value) {
    return as_type<To>(vec<T, Count>(value));
}

} // namespace metal

// MSL has these names without the namespace as well.
using metal::as_type;
using metal::packed_char4;
using metal::float2;
using metal::float3;
using metal::float4;
using metal::half2;
using metal::half3;
using metal::half4;
namespace metal {
using ::uint;
}

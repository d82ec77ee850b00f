// The type traits of <metal_type_traits> that the shim and kernels use.
#pragma once

namespace metal {

template <class A, class B> struct is_same {
    static constexpr bool value = false;
};
template <class A> struct is_same<A, A> {
    static constexpr bool value = true;
};
template <class A, class B> constexpr bool is_same_v = is_same<A, B>::value;

template <bool, class T = void> struct enable_if {};
template <class T> struct enable_if<true, T> {
    typedef T type;
};
template <bool B, class T = void> using enable_if_t = typename enable_if<B, T>::type;

template <bool, class A, class B> struct conditional {
    typedef A type;
};
template <class A, class B> struct conditional<false, A, B> {
    typedef B type;
};
template <bool B, class X, class Y> using conditional_t = typename conditional<B, X, Y>::type;

} // namespace metal

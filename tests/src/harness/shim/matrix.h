// Matrices of <metal_matrix>: columns, as in MSL. The MSL that naga writes needs no more of them.
#pragma once

namespace metal {

template <class T, int Columns, int Rows> struct matrix {
    vec<T, Rows> columns[Columns];

    matrix() = default;
    template <class... Column, class = enable_if_t<sizeof...(Column) == Columns>>
    explicit matrix(Column... each) : columns{each...} {}
    vec<T, Rows> &operator[](uint i) { return columns[i]; }
    vec<T, Rows> operator[](uint i) const { return columns[i]; }
};

template <class T, int Columns, int Rows>
matrix<T, Rows, Columns> transpose(matrix<T, Columns, Rows> m) {
    matrix<T, Rows, Columns> result;
    for (int i = 0; i < Columns; i++) {
        for (int j = 0; j < Rows; j++) {
            result.columns[j].elements[i] = m.columns[i].elements[j];
        }
    }
    return result;
}

typedef matrix<float, 2, 4> float2x4;
typedef matrix<float, 4, 4> float4x4;

} // namespace metal

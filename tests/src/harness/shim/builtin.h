// Defines what Metal's compiler knows without an #include: words, address spaces, scalar types.
// Included before each kernel. clang compiles kernels as C++ for OpenCL, because that language has
// MSL's address spaces: a method may be qualified by one, and memory is plain memory to sanitizers.
#pragma once

// If only the signature is asked for, the words stay as they are.
#ifndef TILEWISE_SIGNATURE

// Words of OpenCL that MSL leaves to programs.
#define global global_
#define local local_
#define generic generic_

#define device __global
#define threadgroup __local
#define thread __private
#define constant const __constant
#define kernel static __attribute__((always_inline))

typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long int64_t;
typedef unsigned long uint64_t;
typedef __SIZE_TYPE__ size_t;
typedef __PTRDIFF_TYPE__ ptrdiff_t;

#include "engine.h"
#include "scalar.h"
#include "vector.h"
#include "matrix.h"

// An array of exactly this size in memory of the current threadgroup.
#define SHARED(type, name, count)                                                                  \
    threadgroup type(&name)[count] = *reinterpret_cast<threadgroup type(*)[count]>(                \
        tilewise_shared(TILEWISE_PLACE, sizeof(type) * (count)))
// True in the launch that asks for this mutant.
#define MUTANT(id) (tilewise_mutants(id, id))
// True in the launch that asks for a mutant in this range.
#define MUTANTS(first, last) (tilewise_mutants(first, last))

#else
#define SHARED(type, name, count) threadgroup type name[count]
#define MUTANT(id) (false)
#define MUTANTS(first, last) (false)
#endif

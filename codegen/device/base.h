// Types, bit casts and the few operations that host compilers and NVRTC spell differently. Always part of
// generated code.
//
// The files of this folder are text for kernels: plain C++17 and CUDA at once, no #include, no #pragma once.
// Blank lines (at the top level) separate their parts (constants, functions with their helpers); a program
// gets the parts it uses and no other, in the order of codegen/print/prelude.cpp. Floating-point functions
// use + - * / fma, sqrt and rounding alone, each exactly rounded, and select instead of branch: they give the
// same bits in scalar code, in vectors of any width and on a GPU (only the sign and payload of a NaN differ).

typedef signed char i8;
typedef unsigned char u8;
typedef short i16;
typedef unsigned short u16;
typedef int i32;
typedef unsigned int u32;
typedef long long i64;
typedef unsigned long long u64;
typedef float f32;
typedef double f64;
struct f16 {
    u16 bits;
};
struct bf16 {
    u16 bits;
};

#ifdef __CUDACC__
#pragma nv_diag_suppress 177  // declared but never referenced
#define B_SIMD
#define B_ALIGN
#define B_UNROLL _Pragma("unroll")
#define B_PRAGMA(X) _Pragma(#X)
#define B_UNROLL_LOADS(TURNS) B_PRAGMA(unroll TURNS)  // kernel/in_flight.h
#define B_IN_ORDER(X)
#define B_FN static __device__ __forceinline__
#define B_COLD static __device__ __noinline__
#define B_TABLE static __device__ const
#define B_RESTRICT __restrict__
// Shared memory is one piece, which the tasks of a launch use in turns, and arrays of which one is done with
// before the other. (The checking emulator gives each array its own, so that it sees who reaches beyond.)
#ifndef B_SHARED
#define B_SHARED_MEMORY(BYTES) alignas(16) __shared__ unsigned char b_shared[BYTES]
#define B_SHARED(T, NAME, COUNT, OFFSET) T* const NAME = (T*)(b_shared + OFFSET)
#endif
B_FN u32 b_bits(f32 x) { return (u32)__float_as_int(x); }
B_FN u64 b_bits(f64 x) { return (u64)__double_as_longlong(x); }
B_FN f32 b_float(u32 bits) { return __int_as_float((i32)bits); }
B_FN f64 b_double(u64 bits) { return __longlong_as_double((i64)bits); }
B_FN f32 b_fma(f32 a, f32 b, f32 c) { return __fmaf_rn(a, b, c); }
B_FN f64 b_fma(f64 a, f64 b, f64 c) { return __fma_rn(a, b, c); }
B_FN f32 b_sqrt(f32 x) { return __fsqrt_rn(x); }
B_FN f64 b_sqrt(f64 x) { return __dsqrt_rn(x); }
#else
#define B_SIMD _Pragma("omp simd")
#define B_ALIGN alignas(64)
// An array of floats and a register of zeros behind it, which lanes read whose results nobody wants: what lay
// there before may be subnormal, and multiplying it takes a hundred cycles.
#define B_ARRAY(T, NAME, COUNT)               \
    B_ALIGN T NAME[(COUNT) + 64 / sizeof(T)]; \
    __builtin_memset(NAME + (COUNT), 0, 64)
#ifdef __clang__
#define B_UNROLL _Pragma("unroll")
#else
#define B_UNROLL _Pragma("GCC unroll 16")
#endif
// GCC's bug 110381, mended in 13.2: a sum of neighbours that are not added as they lie, as in a row from its
// end, becomes one of vectors whose elements are in the wrong order, some added twice. Such sums stay scalar.
#if defined(__clang__) || __GNUC__ > 13 || (__GNUC__ == 13 && __GNUC_MINOR__ >= 2)
#define B_IN_ORDER(X)
#elif defined(__aarch64__)
#define B_IN_ORDER(X) asm("" : "+w"(X))
#else
#define B_IN_ORDER(X) asm("" : "+x"(X))
#endif
// Wrong code of GCC 12, not of 14, near its bug 114375: masked loads of a group of vectors, as guarded reads
// of three neighbours in turn give, all get the mask of the first one. The larger of 16-bit integers under a
// mask, beside a load, is an instruction that it does not know. Such loops stay scalar.
#if defined(__clang__) || __GNUC__ >= 14
#define B_SCALAR_LOOP
#else
#define B_SCALAR_LOOP asm volatile("")
#endif
// The compiler forgets what it knows of the value.
#define B_OPAQUE(X) asm volatile("" : "+r"(X))
// The same of an address of what the task has written before and reads by it.
#define B_OPAQUE_ADDRESS(X) asm volatile("" : "+r"(X) : : "memory")
#define B_FN static inline __attribute__((always_inline))
#define B_COLD static __attribute__((noinline, cold, unused))
#define B_TABLE static const
#define B_RESTRICT __restrict__
B_FN u32 b_bits(f32 x) { return __builtin_bit_cast(u32, x); }
B_FN u64 b_bits(f64 x) { return __builtin_bit_cast(u64, x); }
B_FN f32 b_float(u32 bits) { return __builtin_bit_cast(f32, bits); }
B_FN f64 b_double(u64 bits) { return __builtin_bit_cast(f64, bits); }
B_FN f32 b_fma(f32 a, f32 b, f32 c) { return __builtin_fmaf(a, b, c); }
B_FN f64 b_fma(f64 a, f64 b, f64 c) { return __builtin_fma(a, b, c); }
B_FN f32 b_sqrt(f32 x) { return __builtin_sqrtf(x); }
B_FN f64 b_sqrt(f64 x) { return __builtin_sqrt(x); }
#endif

#define b_inf b_float(0x7f800000u)
#define b_nan b_float(0x7fc00000u)
B_FN f32 b_magnitude(f32 x) { return b_float(b_bits(x) & 0x7fffffffu); }
B_FN f64 b_magnitude(f64 x) { return b_double(b_bits(x) & 0x7fffffffffffffffull); }
B_FN f32 b_copysign(f32 x, f32 sign) {
    return b_float((b_bits(x) & 0x7fffffffu) | (b_bits(sign) & 0x80000000u));
}
B_FN f64 b_copysign(f64 x, f64 sign) {
    return b_double((b_bits(x) & 0x7fffffffffffffffull) | (b_bits(sign) & 0x8000000000000000ull));
}

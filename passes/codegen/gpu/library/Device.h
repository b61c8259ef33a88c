// What device functions are written with; there is no CUDA SDK. They are called
// with constants for all sizes, inlined and folded, so `if (bytes == 2)` costs
// nothing; a loop over a constant range is unrolled where a pragma says so.
#pragma once

#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define MESHWORK_INLINE __device__ __attribute__((always_inline)) inline
/// A function that kernels call, by this very name. Its arguments: pointers
/// (null: absent), then what is constant in each kernel, i64 or float.
#define DEVICE_FUNCTION extern "C" __device__

namespace meshwork {

using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;
using i32 = int;
using i64 = long long;
static_assert(sizeof(u64) == 8 && sizeof(void *) == 8);

/// N elements at once: one access where N * sizeof(T) is up to 16 and the
/// address is a multiple of it.
template <typename T, int N>
using Vector = T __attribute__((ext_vector_type(N)));

struct Bf16 {
  u16 bits;
};

__device__ inline u32 threadInBlock() {
  return static_cast<u32>(__nvvm_read_ptx_sreg_tid_x());
}
__device__ inline u32 blockInGrid() {
  return static_cast<u32>(__nvvm_read_ptx_sreg_ctaid_x());
}
__device__ inline void meetBlock() { __syncthreads(); }
/// The lanes of the warp, all of which are here, for which `is` holds.
__device__ inline u32 ballot(bool is) {
  return __nvvm_vote_ballot_sync(~0u, is);
}
__device__ inline u32 countBits(u32 bits) {
  return static_cast<u32>(__builtin_popcount(bits));
}

/// The block's dynamic shared memory.
extern "C" __shared__ __attribute__((aligned(128))) u8 meshwork_shared[];

/// N elements as they lie in memory; the address is a multiple of 16 bytes or
/// of all of them.
template <int N> __device__ inline Vector<float, N> loadRaw(const float *from) {
  return *reinterpret_cast<const Vector<float, N> *>(from);
}
template <int N> __device__ inline Vector<u16, N> loadRaw(const Bf16 *from) {
  return *reinterpret_cast<const Vector<u16, N> *>(from);
}

/// What was loaded, as f32.
template <int N>
__device__ inline Vector<float, N> widen(Vector<float, N> values) {
  return values;
}
template <int N> __device__ inline Vector<float, N> widen(Vector<u16, N> bits) {
  Vector<u32, N> wide = __builtin_convertvector(bits, Vector<u32, N>) << 16;
  return __builtin_bit_cast(Vector<float, N>, wide);
}

template <int N, typename T>
__device__ inline Vector<float, N> load(const T *from) {
  return widen<N>(loadRaw<N>(from));
}

/// Rounds once, to nearest even.
template <int N>
__device__ inline void store(float *to, Vector<float, N> values) {
  *reinterpret_cast<Vector<float, N> *>(to) = values;
}
template <int N>
__device__ inline void store(Bf16 *to, Vector<float, N> values) {
  *reinterpret_cast<Vector<__bf16, N> *>(to) =
      __builtin_convertvector(values, Vector<__bf16, N>);
}

/// `function` with one of the two types that `bytes` may mean, as a null
/// pointer.
template <typename Function>
__device__ inline void withType(i64 bytes, Function function) {
  if (bytes == 2)
    function(static_cast<Bf16 *>(nullptr));
  else
    function(static_cast<float *>(nullptr));
}

template <int N> struct Width {
  static constexpr int value = N;
};
/// `function` with the width as a constant: 8, 4, 2 or 1.
template <typename Function>
__device__ inline void withWidth(i64 width, Function function) {
  if (width == 8)
    function(Width<8>());
  else if (width == 4)
    function(Width<4>());
  else if (width == 2)
    function(Width<2>());
  else
    function(Width<1>());
}

} // namespace meshwork

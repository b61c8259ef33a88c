// What device functions are written with: there is no CUDA SDK.
#pragma once

#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))

using u16 = unsigned short;
using u32 = unsigned;
using i32 = int;
using i64 = long long;

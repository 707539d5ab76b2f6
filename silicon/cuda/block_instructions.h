// The instructions on blocks: copies, reductions and prefetch of bytes that lie together.
//
// Global addresses are of the global window, shared ones of the shared window; PTX wants addresses and sizes to be
// multiples of 16, and nothing here checks that. Copies to shared memory count their bytes at a barrier; those to
// global memory are part of the thread's next bulk group.
#pragma once
#include <cstdint>

#include "job.h"

namespace tilewright {

__device__ __forceinline__ void copy_to_shared(uint32_t destination, uint64_t source, uint32_t size, uint32_t barrier)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                     destination),
                 "l"(source), "r"(size), "r"(barrier)
                 : "memory");
}

// To the same address in every block of the mask, where the barrier at the same address counts the bytes.
__device__ __forceinline__ void multicast_to_shared(
    uint32_t destination, uint64_t source, uint32_t size, uint32_t barrier, uint16_t mask)
{
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], %2, [%3], %4;"
        ::"r"(destination), "l"(source), "r"(size), "r"(barrier), "h"(mask)
        : "memory");
}

__device__ __forceinline__ void copy_to_global(uint64_t destination, uint32_t source, uint32_t size)
{
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(destination), "r"(source),
                 "r"(size)
                 : "memory");
}

// The destination and its barrier are those of one block of the cluster; addresses of the own block are valid there.
__device__ __forceinline__ void copy_in_shared(uint32_t destination, uint32_t source, uint32_t size, uint32_t barrier)
{
    asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                     destination),
                 "r"(source), "r"(size), "r"(barrier)
                 : "memory");
}

// Nothing tells when it is done.
__device__ __forceinline__ void prefetch_block(uint64_t source, uint32_t size)
{
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(source), "r"(size) : "memory");
}

// A reduction and the type of its elements as one number.
__device__ constexpr uint32_t pair(Reduction reduction, Type type)
{
    return static_cast<uint32_t>(reduction) << 16 | static_cast<uint32_t>(type);
}

#define WITH(reduction, type) case pair(Reduction::reduction, Type::type)

#define REDUCE(suffix)                                                                                     \
    asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group." suffix " [%0], [%1], %2;" ::"l"(    \
                     destination),                                                                         \
                 "r"(source), "r"(size)                                                                    \
                 : "memory");                                                                              \
    return true

// Returns false if there is no such instruction.
__device__ __forceinline__ bool reduce_to_global(
    Reduction reduction, Type type, uint64_t destination, uint32_t source, uint32_t size)
{
    switch (pair(reduction, type)) {
        WITH(ADD, U32): REDUCE("add.u32");
        WITH(ADD, S32): REDUCE("add.s32");
        WITH(ADD, U64): REDUCE("add.u64");
        WITH(ADD, F16): REDUCE("add.noftz.f16");
        WITH(ADD, BF16): REDUCE("add.noftz.bf16");
        WITH(ADD, F32): REDUCE("add.f32");
        WITH(MIN, U32): REDUCE("min.u32");
        WITH(MIN, S32): REDUCE("min.s32");
        WITH(MIN, U64): REDUCE("min.u64");
        WITH(MIN, S64): REDUCE("min.s64");
        WITH(MIN, F16): REDUCE("min.f16");
        WITH(MIN, BF16): REDUCE("min.bf16");
        WITH(MAX, U32): REDUCE("max.u32");
        WITH(MAX, S32): REDUCE("max.s32");
        WITH(MAX, U64): REDUCE("max.u64");
        WITH(MAX, S64): REDUCE("max.s64");
        WITH(MAX, F16): REDUCE("max.f16");
        WITH(MAX, BF16): REDUCE("max.bf16");
        WITH(INC, U32): REDUCE("inc.u32");
        WITH(DEC, U32): REDUCE("dec.u32");
        WITH(AND, U32):
        WITH(AND, S32): REDUCE("and.b32");
        WITH(AND, U64):
        WITH(AND, S64): REDUCE("and.b64");
        WITH(OR, U32):
        WITH(OR, S32): REDUCE("or.b32");
        WITH(OR, U64):
        WITH(OR, S64): REDUCE("or.b64");
        WITH(XOR, U32):
        WITH(XOR, S32): REDUCE("xor.b32");
        WITH(XOR, U64):
        WITH(XOR, S64): REDUCE("xor.b64");
        default: return false;
    }
}

#undef REDUCE
#define REDUCE(suffix)                                                                                          \
    asm volatile("cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes." suffix        \
                 " [%0], [%1], %2, [%3];" ::"r"(destination),                                                   \
                 "r"(source), "r"(size), "r"(barrier)                                                           \
                 : "memory");                                                                                   \
    return true

// Returns false if there is no such instruction.
__device__ __forceinline__ bool reduce_in_shared(
    Reduction reduction, Type type, uint32_t destination, uint32_t source, uint32_t size, uint32_t barrier)
{
    switch (pair(reduction, type)) {
        WITH(ADD, U32): REDUCE("add.u32");
        WITH(ADD, S32): REDUCE("add.s32");
        WITH(ADD, U64): REDUCE("add.u64");
        WITH(MIN, U32): REDUCE("min.u32");
        WITH(MIN, S32): REDUCE("min.s32");
        WITH(MAX, U32): REDUCE("max.u32");
        WITH(MAX, S32): REDUCE("max.s32");
        WITH(INC, U32): REDUCE("inc.u32");
        WITH(DEC, U32): REDUCE("dec.u32");
        WITH(AND, U32):
        WITH(AND, S32): REDUCE("and.b32");
        WITH(OR, U32):
        WITH(OR, S32): REDUCE("or.b32");
        WITH(XOR, U32):
        WITH(XOR, S32): REDUCE("xor.b32");
        default: return false;
    }
}

#undef REDUCE
#undef WITH

}  // namespace tilewright

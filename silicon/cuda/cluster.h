// Blocks of threads in a cluster: which one this is, where the others' shared memories are, and when all have come.
#pragma once
#include <cstdint>

namespace tilewright {

// Number of this block in its cluster.
__device__ __forceinline__ uint32_t own_core()
{
    uint32_t core;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(core));
    return core;
}

// What lies in another block's shared memory where `address` is in that of this one.
__device__ __forceinline__ uint32_t address_in(uint32_t core, uint32_t address)
{
    uint32_t mapped;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(mapped) : "r"(address), "r"(core));
    return mapped;
}

// Waits until every thread of the cluster has come here. What each has written before, all can read after.
__device__ __forceinline__ void meet_cluster()
{
    asm volatile("barrier.cluster.arrive.release;" ::: "memory");
    asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
}

}  // namespace tilewright

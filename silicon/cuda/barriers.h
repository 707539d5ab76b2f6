// What threads tell each other: barriers in shared memory, bulk groups, fences, the clock, and meetings of a cluster of
// blocks.
//
// Barriers are named by their address in shared memory. A phase of one ends when all its arrivals have been made and
// its count of bytes, which may be negative on the way, is zero; its parity is 0, then 1, then 0 again. The count of a
// phase reaches from -(2^20 - 1) to 2^20 - 1.
#pragma once
#include <cstdint>

namespace tilewright {

// So many arrivals end a phase. Asynchronous copies and other blocks may use the barrier after this.
__device__ __forceinline__ void init_barrier(uint32_t barrier, uint32_t arrivals = 1)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

// Adds to the bytes that the phase waits for.
__device__ __forceinline__ void expect(uint32_t barrier, uint32_t bytes)
{
    asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

// Adds to the bytes that the phase waits for, then makes the arrival.
__device__ __forceinline__ void arrive_expecting(uint32_t barrier, uint32_t bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

// Makes `arrivals` arrivals at a barrier in any block of the cluster; its address lies in the window of the cluster.
__device__ __forceinline__ void arrive_in_cluster(uint32_t barrier, uint32_t arrivals)
{
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0], %1;" ::"r"(barrier), "r"(arrivals)
                 : "memory");
}

// Takes bytes off the count, as a copy does when they are written.
__device__ __forceinline__ void complete(uint32_t barrier, uint32_t bytes)
{
    asm volatile("mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

// Whether the phase of this parity is over. Then what was copied before its end can be read.
__device__ __forceinline__ bool phase_over(uint32_t barrier, uint32_t parity)
{
    uint32_t over;
    asm volatile(
        "{\n"
        ".reg .pred over;\n"
        "mbarrier.test_wait.parity.shared::cta.b64 over, [%1], %2;\n"
        "selp.u32 %0, 1, 0, over;\n"
        "}"
        : "=r"(over)
        : "r"(barrier), "r"(parity)
        : "memory");
    return over != 0;
}

// The same of a barrier at which other blocks arrive. Then what they have read before can be written over.
__device__ __forceinline__ bool phase_over_in_cluster(uint32_t barrier, uint32_t parity)
{
    uint32_t over;
    asm volatile(
        "{\n"
        ".reg .pred over;\n"
        "mbarrier.test_wait.parity.acquire.cluster.shared::cta.b64 over, [%1], %2;\n"
        "selp.u32 %0, 1, 0, over;\n"
        "}"
        : "=r"(over)
        : "r"(barrier), "r"(parity)
        : "memory");
    return over != 0;
}

// Nanoseconds. The clock may advance in steps of about a microsecond.
__device__ __forceinline__ uint64_t now()
{
    uint64_t time;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time)::"memory");
    return time;
}

__device__ __forceinline__ void pause(uint64_t nanoseconds)
{
    for (const uint64_t start = now(); now() - start < nanoseconds;) {
    }
}

// Waits for the end of a phase; false if it has not come within the limit.
__device__ __forceinline__ bool wait_for_phase(uint32_t barrier, uint32_t parity, uint64_t nanoseconds)
{
    for (const uint64_t start = now(); now() - start < nanoseconds;) {
        if (phase_over(barrier, parity)) return true;
    }
    return phase_over(barrier, parity);
}

// Waits until this thread's stores and reductions are written, so that everybody can read them.
__device__ __forceinline__ void finish_groups()
{
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

// Lets asynchronous copies see what this thread has written, and not overtake what it has read. The way back needs no
// fence: the end of an asynchronous copy has one.
__device__ __forceinline__ void fence_for_copies()
{
    asm volatile("fence.proxy.async;" ::: "memory");
}

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

// Runs the kernel of carry_out.h to its end.
#pragma once
#include <cuda_runtime.h>

#include <chrono>

#include "carry_out.h"
#include "memories.h"

namespace tilewright {

// A kernel takes no longer, whatever its command is: the longest counts a million bytes one by one, all cores at once.
constexpr std::chrono::seconds KERNEL_LIMIT(5);

// Once, before the first launch: the most shared memory that the GPU gives to a kernel.
inline void allow_shared_memory(int bytes)
{
    check(cudaFuncSetAttribute(carry_out, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
}

// Throws a CudaError if the kernel does not end well; then the GPU is of no more use to this process.
inline void launch(const CUtensorMap& map, const Task& task)
{
    cudaLaunchAttribute cluster{};
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim = {task.cores, 1, 1};
    cudaLaunchConfig_t config{};
    config.gridDim = task.cores;
    config.blockDim = THREADS;
    config.dynamicSmemBytes = task.shared_bytes + BARRIER_BYTES;
    config.attrs = &cluster;
    config.numAttrs = 1;
    check(cudaLaunchKernelEx(&config, carry_out, map, task));
    const auto start = std::chrono::steady_clock::now();
    for (cudaError_t error; (error = cudaStreamQuery(cudaStreamLegacy)) != cudaSuccess;) {
        if (error != cudaErrorNotReady) throw CudaError(error);
        if (std::chrono::steady_clock::now() - start > KERNEL_LIMIT) throw CudaError(cudaErrorLaunchTimeout);
    }
}

}  // namespace tilewright

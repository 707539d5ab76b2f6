// Finds the GPU, says what it is, and runs the kernel of carry_out.h on it to its end.
#pragma once
#include <cuda_runtime.h>

#include <chrono>
#include <stdexcept>
#include <string>
#include <string_view>

#include "carry_out.h"
#include "driver.h"

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

// As much of a text as fits, and a zero.
template <size_t SIZE>
void set_text(char (&text)[SIZE], std::string_view value)
{
    text[value.copy(text, SIZE - 1)] = 0;
}

// Where the kernel finds the job's shared memory in its window.
inline uint64_t address_of_shared_memory()
{
    HostMemory memory;
    auto* reply = reinterpret_cast<CommandReply*>(memory.reserve(sizeof(CommandReply)));
    launch(CUtensorMap{}, Task{{}, {}, nullptr, nullptr, 0, 1, reply});
    return reply->bytes;
}

// Describes the first GPU and runs the kernel on it once. Throws a sentence if that is not possible.
inline void describe_gpu(Hello& hello)
{
    cudaDeviceProp properties;
    check(cudaGetDeviceProperties(&properties, 0));
    set_text(hello.gpu, properties.name);
    hello.major = properties.major;
    hello.minor = properties.minor;
    if (hello.major < 9) {
        throw std::runtime_error("compute capability " + std::to_string(hello.major) + "." +
                                 std::to_string(hello.minor) + " is below 9.0");
    }
    int shared;
    check(cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0));
    hello.shared_bytes = shared - BARRIER_BYTES;
    allow_shared_memory(shared);
    const uint64_t address = address_of_shared_memory();
    if (address % SHARED_ALIGNMENT) {
        throw std::runtime_error("shared memory begins at " + std::to_string(address) + ", no multiple of " +
                                 std::to_string(SHARED_ALIGNMENT));
    }
}

// A Hello that says FAILED if there is no GPU to work on.
inline Hello hello()
{
    Hello hello{};
    hello.magic = HELLO;
    cudaRuntimeGetVersion(&hello.runtime);
    cudaDriverGetVersion(&hello.driver);
    try {
        if (!hello.driver) throw std::runtime_error("there is no CUDA driver");
        describe_gpu(hello);
    } catch (const CudaError& error) {
        hello.status = static_cast<uint32_t>(Status::FAILED);
        set_text(hello.message, cudaGetErrorString(error.error));
    } catch (const std::exception& error) {
        hello.status = static_cast<uint32_t>(Status::FAILED);
        set_text(hello.message, error.what());
    }
    return hello;
}

}  // namespace tilewright

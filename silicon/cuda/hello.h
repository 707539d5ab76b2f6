// Finds the GPU, and says what it is.
#pragma once
#include <cuda_runtime.h>

#include <stdexcept>
#include <string>
#include <string_view>

#include "carry_out.h"
#include "job.h"
#include "launch.h"
#include "memories.h"

namespace tilewright {

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

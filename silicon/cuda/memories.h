// Memory that is kept from job to job and grows; it is given back when the program ends.
#pragma once
#include <cuda_runtime.h>

#include <cstdint>
#include <stdexcept>

namespace tilewright {

// An error of the CUDA runtime.
class CudaError : public std::runtime_error {
public:
    explicit CudaError(cudaError_t error) : std::runtime_error(cudaGetErrorName(error)), error(error) {}
    const cudaError_t error;
};

inline void check(cudaError_t error)
{
    if (error != cudaSuccess) throw CudaError(error);
}

// Global memory of the GPU. It begins at a multiple of ALIGNMENT.
class GlobalMemory {
public:
    static constexpr uint64_t ALIGNMENT = 2 << 20;

    // Room for so many bytes. Contents are lost if that is more than there was.
    uint8_t* reserve(uint64_t bytes)
    {
        if (bytes > room || !allocation) {
            check(cudaFree(allocation));
            allocation = nullptr;
            check(cudaMalloc(&allocation, bytes + ALIGNMENT));
            room = bytes;
        }
        const uint64_t address = reinterpret_cast<uint64_t>(allocation);
        return reinterpret_cast<uint8_t*>((address + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
    }

private:
    void* allocation = nullptr;
    uint64_t room = 0;
};

// Memory of the host that the GPU reaches too, at the same address.
class HostMemory {
public:
    uint8_t* reserve(uint64_t bytes)
    {
        if (bytes > room || !allocation) {
            check(cudaFreeHost(allocation));
            allocation = nullptr;
            check(cudaMallocHost(&allocation, bytes + 1));
            room = bytes;
        }
        return static_cast<uint8_t*>(allocation);
    }

private:
    void* allocation = nullptr;
    uint64_t room = 0;
};

}  // namespace tilewright

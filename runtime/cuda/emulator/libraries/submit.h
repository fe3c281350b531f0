// How the emulated libraries of products and convolutions put their work into a stream of the emulated
// runtime, as the real ones launch kernels through the real one.
#pragma once

#include <dlfcn.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "runtime/cuda/types.h"

namespace bitale::emulated {

using Submit = int (*)(void* stream, void (*run)(void* data), void (*drop)(void* data), void* data);

// Asked anew until it is there: who opened this library may open the runtime later. By name, so that of two
// runtimes in a process the one of our version is taken. Null: there is none, and nothing can be launched.
inline Submit submit_of_runtime() {
    static Submit known = nullptr;
    if (known) return known;
    const std::string name = "libcudart.so." + std::to_string(BITALE_EMULATED_CUDA / 1000);
    void* const runtime = dlopen(name.c_str(), RTLD_LAZY | RTLD_NOLOAD);
    if (runtime) known = reinterpret_cast<Submit>(dlsym(runtime, "bitale_emulated_submit"));
    return known;
}

// False where the stream does not take it. A captured stream runs it at each launch of the graph.
inline bool submit(cuda::Stream stream, std::function<void()> work) {
    const Submit put = submit_of_runtime();
    if (!put) return false;
    auto owned = std::make_unique<std::function<void()>>(std::move(work));
    // Refused work is dropped by the runtime too.
    return put(
               stream, [](void* data) { (*static_cast<std::function<void()>*>(data))(); },
               [](void* data) { delete static_cast<std::function<void()>*>(data); }, owned.release()) == 0;
}

}  // namespace bitale::emulated

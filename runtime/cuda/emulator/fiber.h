// A second stack to run a function on. Switching costs nanoseconds where the machine's own switch is written
// out (x86-64, aarch64), and system calls elsewhere.
#pragma once

#include <cstddef>
#include <memory>

#if !defined(__x86_64__) && !defined(__aarch64__)
#include <ucontext.h>
#endif

#if defined(__SANITIZE_ADDRESS__)
#define BITALE_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define BITALE_ADDRESS_SANITIZER 1
#endif
#if __has_feature(thread_sanitizer)
#define BITALE_THREAD_SANITIZER 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define BITALE_THREAD_SANITIZER 1
#endif

namespace bitale::cuda {

// Where a stack was left. AddressSanitizer and ThreadSanitizer are told of every switch.
struct StackPoint {
#if defined(__x86_64__) || defined(__aarch64__)
    void* stack_pointer = nullptr;
#else
    ucontext_t context{};
#endif
    void* sanitizer = nullptr;
    const void* bottom = nullptr;
    std::size_t bytes = 0;
    void* of_threads = nullptr;  // ThreadSanitizer's fiber
};

// Of one host thread at a time: resume() is called from the host's own stack, leave() from the fiber's.
class Fiber {
  public:
#if defined(BITALE_ADDRESS_SANITIZER) || defined(BITALE_THREAD_SANITIZER)
    static constexpr std::size_t stack_bytes = std::size_t{512} << 10;  // of code that is not optimised
#else
    static constexpr std::size_t stack_bytes = std::size_t{64} << 10;
#endif

    Fiber();
    ~Fiber();
    Fiber(const Fiber&) = delete;
    Fiber& operator=(const Fiber&) = delete;

    // The next resume() begins `function`, which must never return; what ran here before is forgotten.
    void prepare(void (*function)());
    void resume();
    // Back behind resume(). `for_good`: never to be resumed without prepare().
    void leave(bool for_good = false);

    const char* stack() const { return stack_.get(); }

  private:
    static void enter();

    std::unique_ptr<char[]> stack_;
    void (*function_)() = nullptr;
    StackPoint here_, host_;
};

}  // namespace bitale::cuda

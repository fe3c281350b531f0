#include "runtime/cuda/emulator/fiber.h"

#include <cstdint>
#include <cstring>
#include <utility>

#ifdef BITALE_ADDRESS_SANITIZER
extern "C" {
void __sanitizer_start_switch_fiber(void** save, const void* bottom, std::size_t bytes);        // NOLINT
void __sanitizer_finish_switch_fiber(void* save, const void** old_bottom, std::size_t* bytes);  // NOLINT
void __asan_unpoison_memory_region(const volatile void* at, std::size_t bytes);                 // NOLINT
}
#endif
#ifdef BITALE_THREAD_SANITIZER
extern "C" {
void* __tsan_get_current_fiber();                          // NOLINT
void* __tsan_create_fiber(unsigned flags);                 // NOLINT
void __tsan_destroy_fiber(void* fiber);                    // NOLINT
void __tsan_switch_to_fiber(void* fiber, unsigned flags);  // NOLINT
}
#endif

// Pushes what a callee must preserve, keeps the stack pointer in *from, and pops the same from `to`.
#if defined(__x86_64__)
extern "C" void bitale_switch_stack(void** from, void* to) __attribute__((visibility("hidden")));
asm(R"(
    .text
    .p2align 4
    .hidden bitale_switch_stack
    .globl bitale_switch_stack
    .type bitale_switch_stack, @function
bitale_switch_stack:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
    .size bitale_switch_stack, .-bitale_switch_stack
)");
#elif defined(__aarch64__)
extern "C" void bitale_switch_stack(void** from, void* to) __attribute__((visibility("hidden")));
asm(R"(
    .text
    .p2align 4
    .hidden bitale_switch_stack
    .globl bitale_switch_stack
    .type bitale_switch_stack, %function
bitale_switch_stack:
    stp x29, x30, [sp, #-160]!
    stp x19, x20, [sp, #16]
    stp x21, x22, [sp, #32]
    stp x23, x24, [sp, #48]
    stp x25, x26, [sp, #64]
    stp x27, x28, [sp, #80]
    stp d8, d9, [sp, #96]
    stp d10, d11, [sp, #112]
    stp d12, d13, [sp, #128]
    stp d14, d15, [sp, #144]
    mov x9, sp
    str x9, [x0]
    mov sp, x1
    ldp x19, x20, [sp, #16]
    ldp x21, x22, [sp, #32]
    ldp x23, x24, [sp, #48]
    ldp x25, x26, [sp, #64]
    ldp x27, x28, [sp, #80]
    ldp d8, d9, [sp, #96]
    ldp d10, d11, [sp, #112]
    ldp d12, d13, [sp, #128]
    ldp d14, d15, [sp, #144]
    ldp x29, x30, [sp], #160
    ret
    .size bitale_switch_stack, .-bitale_switch_stack
)");
#endif

namespace bitale::cuda {

namespace {

// The fiber that is being begun; switching takes no arguments along.
thread_local Fiber* beginning = nullptr;

#if defined(__x86_64__) || defined(__aarch64__)
// A stack as bitale_switch_stack leaves it, whose return address is `function`.
void* fresh_stack(char* stack, std::size_t bytes, void (*function)()) {
    const auto address = reinterpret_cast<std::uintptr_t>(function);
    auto top = reinterpret_cast<std::uintptr_t>(stack + bytes) & ~std::uintptr_t{15};
#if defined(__x86_64__)
    top -= 8 * sizeof(void*);  // six registers, the address, and none to return to from there
    auto* words = reinterpret_cast<std::uintptr_t*>(top);
    std::memset(words, 0, 8 * sizeof(void*));
    words[6] = address;
#else
    top -= 160;
    auto* words = reinterpret_cast<std::uintptr_t*>(top);
    std::memset(words, 0, 160);
    words[1] = address;
#endif
    return words;
}

void switch_stack(StackPoint& from, StackPoint& to) {
    bitale_switch_stack(&from.stack_pointer, to.stack_pointer);
}
#else
void switch_stack(StackPoint& from, StackPoint& to) { swapcontext(&from.context, &to.context); }
#endif

void before_switch([[maybe_unused]] StackPoint* from, [[maybe_unused]] const StackPoint& to) {
#ifdef BITALE_ADDRESS_SANITIZER
    __sanitizer_start_switch_fiber(from ? &from->sanitizer : nullptr, to.bottom, to.bytes);
#endif
#ifdef BITALE_THREAD_SANITIZER
    __tsan_switch_to_fiber(to.of_threads, 0);
#endif
}

// `left` gets the bounds of the stack that was left, if it is given.
void after_switch([[maybe_unused]] StackPoint& now, [[maybe_unused]] StackPoint* left) {
#ifdef BITALE_ADDRESS_SANITIZER
    const void* bottom = nullptr;
    std::size_t bytes = 0;
    __sanitizer_finish_switch_fiber(std::exchange(now.sanitizer, nullptr), &bottom, &bytes);
    if (left) {
        left->bottom = bottom;
        left->bytes = bytes;
    }
#endif
}

void forget([[maybe_unused]] const StackPoint& point) {
#ifdef BITALE_THREAD_SANITIZER
    if (point.of_threads) __tsan_destroy_fiber(point.of_threads);
#endif
}

}  // namespace

Fiber::Fiber() : stack_(std::make_unique_for_overwrite<char[]>(stack_bytes)) {}

Fiber::~Fiber() { forget(here_); }

void Fiber::prepare(void (*function)()) {
#ifdef BITALE_ADDRESS_SANITIZER
    __asan_unpoison_memory_region(stack_.get(), stack_bytes);  // frames that were never left
#endif
    function_ = function;
    forget(here_);
    here_ = {};
#ifdef BITALE_THREAD_SANITIZER
    here_.of_threads = __tsan_create_fiber(0);
#endif
    here_.bottom = stack_.get();
    here_.bytes = stack_bytes;
#if defined(__x86_64__) || defined(__aarch64__)
    here_.stack_pointer = fresh_stack(stack_.get(), stack_bytes, &Fiber::enter);
#else
    getcontext(&here_.context);
    here_.context.uc_stack.ss_sp = stack_.get();
    here_.context.uc_stack.ss_size = stack_bytes;
    here_.context.uc_link = nullptr;
    makecontext(&here_.context, &Fiber::enter, 0);
#endif
}

void Fiber::enter() {
    Fiber& self = *beginning;
    after_switch(self.here_, &self.host_);
    self.function_();
}

void Fiber::resume() {
    beginning = this;
#ifdef BITALE_THREAD_SANITIZER
    host_.of_threads = __tsan_get_current_fiber();
#endif
    before_switch(&host_, here_);
    switch_stack(host_, here_);
    after_switch(host_, nullptr);
}

void Fiber::leave(bool for_good) {
    before_switch(for_good ? nullptr : &here_, host_);
    switch_stack(here_, host_);
    after_switch(here_, &host_);
}

}  // namespace bitale::cuda
